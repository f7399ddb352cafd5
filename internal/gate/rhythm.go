package gate

import "math"

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
