package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

type number int

func (n number) Before(other number) bool { return n < other }

// TestHeap: the first value is always the least, whatever is added, changed and removed.
func TestHeap(t *testing.T) {
	deep.Property(t, 1, func(t *rapid.T) {
		var h Heap[number]
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			n := number(rapid.IntRange(0, 20).Draw(t, "number"))
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0 || len(h) == 0:
				h.Push(n)
			case what == 1:
				i := int(n) % len(h)
				h[i] = n
				h.Fix(i)
			case what == 2:
				i := int(n) % len(h)
				want := h[i]
				if got := h.Remove(i); got != want {
					t.Fatalf("removed %d, want %d", got, want)
				}
			default:
				if want, got := slices.Min(h), h.Pop(); got != want {
					t.Fatalf("the first is %d, want %d", got, want)
				}
			}
		}
	})
}
