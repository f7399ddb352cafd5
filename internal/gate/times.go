package gate

import "math"

// times are moving means of how long slots were taken, and of failures.
type times struct {
	mean     float64 // ns
	square   float64 // mean of the square
	failures float64 // the share of requests that the upstream failed
}

// patience is after how many times the mean a client that leaves has left because the upstream is slow. One that leaves
// earlier says nothing of the upstream: else a client could open requests and leave, until the limit is 1.
const patience = 2

// Requests that take longer than outlier ns and than so many times the mean count as if they took that. So a single one
// does not change what is known of all.
const (
	outlier = 1e9
	beyond  = 10
)

// add adds a request, with its weight in the means.
func (t *times) add(took float64, a Answer, weight float64) {
	if a == Left && took < t.mean {
		return
	}
	slow := a == Failed || a == Left && took > patience*t.mean
	took = min(took, max(beyond*t.mean, outlier))
	if t.mean == 0 {
		t.mean, t.square = took, 2*took*took
	}
	t.mean += (took - t.mean) * weight
	t.square += (took*took - t.square) * weight
	failed := 0.0
	if slow {
		failed = 1
	}
	t.failures += (failed - t.failures) * weight
}

// slot is how long a slot is taken that one looks at: long requests are seen more often than short ones.
func (t *times) slot() float64 { return t.square / max(t.mean, 1) }

// spread is the variance of counts of answers, relative to that of a memoryless server.
func (t *times) spread() float64 { return min(max(t.square/(t.mean*t.mean)-1, 0.5), 10) }

// rhythm divides time into phases of 2^shift ns, counted from the epoch of the wall clock. All gates whose
// phases are equally long are in the same phase.
type rhythm struct {
	shift  uint
	phase  int64 // the number of this one
	offset int64 // of the wall clock, relative to the times that are passed in
	counts int64 // before that time, answers still belong to the phase before
}

// longestSlot is the longest time of a slot in ns that phases are made for: those of 2^33 ns or 8.6 s.
const longestSlot = 3.4e9

// over reports whether the phase is over.
func (r *rhythm) over(now int64) bool { return (now+r.offset)>>r.shift != r.phase }

// fit makes phases last 2 to 6 times as long as a slot is taken, and reports whether that is a change. In
// their first part, as long as a slot is taken, the upstream follows the limit. The rest, longer than that, counts.
func (r *rhythm) fit(slot float64) bool {
	length := math.Exp2(float64(r.shift))
	slot = min(slot, longestSlot)
	if length >= 2*slot && (length <= 6*slot || r.shift == shortest) {
		return false
	}
	r.shift = max(shortest, uint(math.Ceil(math.Log2(max(2.5*slot, 1)))))
	return true
}

// begin begins the phase of this time. It reads the wall clock, which may have been set.
func (r *rhythm) begin(now int64, slot float64, wall func() int64) {
	if wall != nil {
		r.offset = wall() - now
	}
	r.phase = (now + r.offset) >> r.shift
	r.counts = now + int64(min(slot, longestSlot))
}
