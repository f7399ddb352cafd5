package algorithms

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Units that are charged ahead count as made when their hold ends. Until then they may be spent, and afterwards not.
// So each is spent before it counts, and what is admitted never exceeds what one limiter would admit: also if a process
// dies that holds units, or if the answer about them is lost.
//
// Limit.Hold is how long units may be held. All who share a state must have the same one, because a refund depends on
// it: see Adjust of buckets.

// part returns how many units of what is left are charged ahead: at most half, because others may need the rest.
func part(want, left int64) int64 { return max(0, min(want, left/2)) }

// Ahead implements [Counter]. The units may be spent until their window ends.
func (FixedWindow) Ahead(s State, p Params, now, _, want int64) (after State, units, lasts int64) {
	start, end, count := windowAt(s, p, now)
	if units = part(want, p[0]-count); units == 0 {
		return s, 0, 0
	}
	return State{start, count + units}, units, end - now - 1
}

// Ahead implements [Counter]. The units may be spent until the window on the clock ends.
func (SlidingWindowCounter) Ahead(s State, p Params, now, _, want int64) (after State, units, lasts int64) {
	window := p[1]
	t, start, current, previous := counts(s, window, now)
	units = part(want, p[0]-current-mulDivUp(previous, window-(t-start), window))
	if units == 0 {
		return s, 0, 0
	}
	return State{t, current + units, previous}, units, start + window - now - 1
}

// Record implements [Recorder]. The cost and the units are one charge, so the cost counts as made when the hold ends, too.
func (a SlidingWindowLog) Record(l *Log, p Params, now, cost, want int64) (units, lasts int64) {
	at, t, expired := a.open(l, p, now)
	if units = part(want, p[0]-l.Events(expired, l.Len())-cost); units > 0 {
		t = max(t, at+p[2])
	}
	if cost+units > 0 {
		l.Forget(expired)
		l.Append(t, cost+units)
	}
	return units, t - now
}

// The bounds of a hold, and the shares of the time in which all of a limit comes back that it is at most, and if none is
// given. What is held of a log at its limit is missing for others, so there it is shorter.
const (
	MinHold = 10 * time.Millisecond
	MaxHold = 10 * time.Second

	longestHold  = 5 * time.Second // if none is given
	maxHoldShare = 10
	holdShare    = 20
	logHoldShare = 50
)

// recovery returns in which time all of a limit comes back: its window, or of a bucket the time until it is full.
func (l Limit) recovery() time.Duration {
	switch {
	case l.Calendar != 0:
		return day * time.Microsecond
	case l.Burst > 0 && l.Events > 0:
		return time.Duration(float64(l.Window) * float64(l.Burst) / float64(l.Events))
	}
	return l.Window
}

// DefaultHold returns how long units of a limit are held if nobody says otherwise.
func DefaultHold(a Algorithm, l Limit) time.Duration {
	share := time.Duration(holdShare)
	if _, ok := a.(Recorder); ok {
		share = logHoldShare
	}
	return max(MinHold, min(longestHold, l.recovery()/share).Truncate(time.Microsecond))
}

// Prepays reports whether units of the limit are charged ahead: they are held for a small part of the time in which it
// comes back. Limits of one zone may differ in this, but not in the hold.
func Prepays(l Limit) bool { return l.Hold != 0 && CheckHold(l) == nil }

// WithHold returns the parameters of a limit with another hold.
func WithHold(a Algorithm, p Params, hold time.Duration) Params {
	switch a.(type) {
	case TokenBucket, LeakyBucket:
		if p[4] == 0 { // not a queue
			p[5] = hold.Microseconds()
		}
	case SlidingWindowLog:
		p[2] = hold.Microseconds()
	}
	return p
}

// CheckHold checks whether units of a limit that Prepare accepts can be held for as long as it says. Its error names what
// would be right.
func CheckHold(l Limit) error {
	longest := min(MaxHold, l.recovery()/maxHoldShare)
	switch {
	case longest < MinHold:
		return fmt.Errorf("lend is for limits that take at least %s to come back, this one takes %s; leave it out",
			duration.Format(maxHoldShare*MinHold), duration.Format(l.recovery()))
	case l.Hold < MinHold || l.Hold > longest:
		return fmt.Errorf("lend must be from %s to %s, a tenth of the time in which the limit comes back, and at most %s, got %s",
			duration.Format(MinHold), duration.Format(longest), duration.Format(MaxHold), duration.Format(l.Hold))
	}
	return nil
}
