package compare

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// timeline counts the refusals of two configs over time.
type timeline struct {
	first, last int64 // in seconds since 1970
	begun       bool
	step        int                 // of steps: how long a part is
	parts       map[int64]*[2]int64 // by the number of the step
}

// steps are how long parts may be, in seconds. Each divides the next one.
var steps = []int64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}

const (
	maxParts   = 4096 // that are kept while the log is read
	maxColumns = 60
)

// add counts a request that a config has decided, the old one (0) or the new one (1).
func (t *timeline) add(at int64, config int, refused bool) {
	if !t.begun {
		t.begun, t.first, t.last, t.parts = true, at, at, make(map[int64]*[2]int64)
	}
	t.first, t.last = min(t.first, at), max(t.last, at)
	if !refused {
		return
	}
	n := floor(at, steps[t.step])
	if t.parts[n] == nil {
		t.parts[n] = new([2]int64)
	}
	t.parts[n][config]++
	if len(t.parts) > maxParts && t.step < len(steps)-1 {
		t.widen()
	}
}

// widen makes the parts longer.
func (t *timeline) widen() {
	was := steps[t.step]
	t.step++
	wider := make(map[int64]*[2]int64)
	for n, counts := range t.parts {
		n = floor(n*was, steps[t.step])
		if wider[n] == nil {
			wider[n] = new([2]int64)
		}
		wider[n][0] += counts[0]
		wider[n][1] += counts[1]
	}
	t.parts = wider
}

// floor divides, and rounds down also below 0.
func floor(a, by int64) int64 {
	n := a / by
	if a%by < 0 {
		n--
	}
	return n
}

// into notes the refusals in a comparison, in as many steps as fit into a picture.
func (t *timeline) into(d *adminapi.LogDiff) {
	if !t.begun {
		return
	}
	columns := func() int64 { return floor(t.last, steps[t.step]) - floor(t.first, steps[t.step]) + 1 }
	for columns() > maxColumns && t.step < len(steps)-1 {
		t.widen()
	}
	first := floor(t.first, steps[t.step])
	n := min(columns(), maxParts)
	d.Begin, d.Step = time.Unix(first*steps[t.step], 0).UTC(), steps[t.step]
	d.WasOver, d.IsOver = make([]int64, n), make([]int64, n)
	for part, counts := range t.parts {
		if i := part - first; i < n {
			d.WasOver[i], d.IsOver[i] = counts[0], counts[1]
		}
	}
}
