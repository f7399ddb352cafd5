package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestTimeline: whatever the span of a log, and in whatever order its lines come, all refusals are in the picture, which
// has from one column to 60, and begins with the first request.
func TestTimeline(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 36))
	for _, span := range []int64{1, 59, 60, 61, 3600, 86400, 40 * 86400, 20 * 365 * 86400} {
		const n, begin = 20_000, 1_790_000_001
		tl, first, refused := new(timeline), int64(begin+span), [2]int64{}
		for i := range n {
			at, config := begin+r.Int64N(span), r.IntN(2)
			first = min(first, at)
			if i%3 > 0 {
				refused[config]++
			}
			tl.add(at, config, i%3 > 0)
		}
		var d adminapi.LogDiff
		tl.into(&d)
		sums := [2]int64{}
		for config, over := range [][]int64{d.WasOver, d.IsOver} {
			for _, n := range over {
				sums[config] += n
			}
		}
		what := fmt.Sprintf("a log of %d seconds, in steps of %d", span, d.Step)
		if sums != refused {
			t.Errorf("%s: %v refused, want %v", what, sums, refused)
		}
		if n := len(d.IsOver); n != len(d.WasOver) || n > maxColumns && d.Step != slices.Max(steps) || n < 1 {
			t.Errorf("%s: %d columns", what, n)
		}
		if ahead := first - d.Begin.Unix(); ahead < 0 || ahead >= d.Step {
			t.Errorf("%s: the first request is %d s behind the beginning", what, ahead)
		}
	}
}
