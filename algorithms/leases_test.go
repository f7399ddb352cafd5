package algorithms_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestLeases compares [algorithms.Leases] with a plain slice, with few leases and with enough
// of them for an index.
func TestLeases(t *testing.T) {
	type held struct {
		id         string
		ends, cost int64
	}
	deep.Property(t, func(t *rapid.T) {
		var leases algorithms.Leases
		var slice []held
		params := algorithms.Params{1_000_000, 1000}
		now := int64(1_000_000)
		ids := rapid.SampledFrom([]int{3, 20, 60}).Draw(t, "ids")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, ids).Draw(t, "id"))
			is := func(h held) bool { return h.id == id }
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0:
				now += rapid.SampledFrom([]int64{-300, 1, 100, 999, 1001}).Draw(t, "gap")
			case 1, 2, 3:
				i := slices.IndexFunc(slice, is)
				cost := rapid.Int64Range(1, 3).Draw(t, "at most")
				back := i >= 0 && slice[i].cost <= cost
				if got := leases.GiveBack(id, cost); got != back {
					t.Fatalf("given back: %v, want %v", got, back)
				}
				if back {
					slice = slices.Delete(slice, i, i+1)
				}
			case 4:
				clone := leases.Clone()
				clone.GiveBack(id, 3)
				algorithms.Concurrency{}.Lease(clone, params, now, 2, "another")
			default:
				cost := rapid.Int64Range(1, 3).Draw(t, "cost")
				algorithms.Concurrency{}.Lease(&leases, params, now, cost, id)
				slice = slices.DeleteFunc(slice, func(h held) bool { return h.ends <= now || is(h) })
				slice = append(slice, held{id, now + params[1], cost})
			}
			if leases.Len() != len(slice) {
				t.Fatalf("%d leases, want %d", leases.Len(), len(slice))
			}
			live, soonest, latest := int64(0), int64(0), int64(0)
			for _, h := range slice {
				if h.ends > now {
					live += h.cost
					latest = max(latest, h.ends-now)
					if soonest == 0 || h.ends-now < soonest {
						soonest = h.ends - now
					}
				}
			}
			d := algorithms.Concurrency{}.Decide(&leases, params, now, 0)
			if d.Remaining != params[0]-live || d.NextAfter.Microseconds() != soonest || d.ResetAfter.Microseconds() != latest {
				t.Fatalf("%+v, want %d held, the first for %d µs and the last for %d", d, live, soonest, latest)
			}
		}
	})
}

// TestRefusalsDropNoLease: a refused request writes nothing but that leases from before a step of the clock
// end sooner, as in Lua. So a lease that has ended counts again when the clock goes back to before its end.
func TestRefusalsDropNoLease(t *testing.T) {
	const second = int64(1_000_000)
	var leases algorithms.Leases
	slots, params := algorithms.Concurrency{}, algorithms.Params{3, 60 * second}
	hour := 3600 * second
	slots.Lease(&leases, params, 48*hour, 2, "before the step")
	slots.Lease(&leases, params, 39*hour, 1, "short")
	if d := slots.Decide(&leases, params, 40*hour, 2); d.Allowed || d.RetryAfter.Seconds() != 60 || leases.Len() != 2 {
		t.Errorf("%+v, and %d leases are kept, want both", d, leases.Len())
	}
	if d := slots.Decide(&leases, params, 39*hour, 1); d.Allowed {
		t.Errorf("when the clock is back: %+v", d)
	}
}
