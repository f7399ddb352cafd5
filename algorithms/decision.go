package algorithms

import (
	"math"
	"time"
)

// Never is a RetryAfter that says: this cost is above what the limit can ever grant.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one cost. Its numbers describe the key after the
// decision: after the charge if the cost was charged, unchanged if not.
type Decision struct {
	// Allowed says whether the cost fits.
	Allowed bool

	// Quota is what a client may hold at once: the events of a window, the burst of
	// a bucket. Remaining plus what is in use equals it.
	Quota int64

	// Remaining is what is left of the quota now; never negative.
	Remaining int64

	// RetryAfter is zero if allowed. If not, it is the exact wait until the same cost
	// would be allowed if nobody else came: one microsecond earlier it is refused.
	// [Never] if it will not be allowed however long one waits.
	RetryAfter time.Duration

	// NextAfter is the wait until Remaining grows by itself; zero if nothing is missing.
	NextAfter time.Duration

	// ResetAfter is the wait until the full quota is back if nothing more comes; zero
	// if nothing is missing. From then on the state is worth nothing.
	ResetAfter time.Duration

	// Delay is how long an allowed request must wait for its turn. Zero for every
	// algorithm that does not queue.
	Delay time.Duration

	// At is when the store decided, in microseconds since 1970 on its clock. The store
	// fills it in.
	At int64

	// Ahead is how long after At the charge counts as made, for time does not go back for a
	// key. It is zero unless the store's clock did, and for what was not charged.
	Ahead time.Duration

	// Exempt says that the limit was not asked, for the key is exempt from it: allowed,
	// nothing was charged, and there are no numbers. This and what follows are the store's
	// to fill in.
	Exempt bool

	// Banned says that the key is banned: whatever is left of the limit, it is refused, and
	// RetryAfter is no shorter than the ban.
	Banned bool

	// BanBegins says that the limit has refused, once too often: from here on the key is
	// banned. It is said once for each ban.
	BanBegins bool

	// Override is not empty if the key has a limit of its own, which the numbers are of. It says
	// which, in a form that is the store's, for whoever corrects the charge.
	Override string
}

// Ban makes of a decision what it is for a key that is banned for so long, in
// microseconds; below 0 is for ever.
func (d Decision) Ban(left int64) Decision {
	wait := time.Duration(left) * time.Microsecond
	switch {
	case left < 0:
		d.RetryAfter, d.NextAfter = Never, 0
	default:
		d.RetryAfter = max(d.RetryAfter, wait)
		if d.Remaining > 0 {
			d.NextAfter = wait
		}
		d.NextAfter = max(d.NextAfter, wait)
		d.ResetAfter = max(d.ResetAfter, d.NextAfter)
	}
	d.Allowed, d.Banned, d.Remaining, d.Delay, d.Ahead = false, true, 0, 0, 0
	return d
}

// Turn is when a request may leave, on the store's clock.
func (d *Decision) Turn() int64 { return d.At + d.Delay.Microseconds() }

// Booked is when the charge counts as made, on the store's clock.
func (d *Decision) Booked() int64 { return d.At + d.Ahead.Microseconds() }

// never is Never in the microseconds of Go and Lua twins, on the wire too.
const never = -1

// Micros makes the decision out of the numbers that both twins return: microseconds,
// with -1 for never. What is allowed has no wait, so retry then says how far ahead of the
// clock it is booked.
func Micros(allowed bool, quota, remaining, retry, next, reset, delay int64) Decision {
	d := Decision{
		Allowed:    allowed,
		Quota:      quota,
		Remaining:  remaining,
		RetryAfter: Never,
		NextAfter:  time.Duration(next) * time.Microsecond,
		ResetAfter: time.Duration(reset) * time.Microsecond,
		Delay:      time.Duration(delay) * time.Microsecond,
	}
	switch wait := time.Duration(retry) * time.Microsecond; {
	case allowed:
		d.RetryAfter, d.Ahead = 0, wait
	case retry != never:
		d.RetryAfter = wait
	}
	return d
}
