package algorithms

import (
	"math"
	"time"
)

// Never is the RetryAfter of a cost that is above what the limit can ever allow, and of a
// ban without an end.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one cost. Its numbers describe the key after the decision:
// with the charge if the cost was charged, unchanged otherwise.
type Decision struct {
	// Allowed reports whether the cost fits.
	Allowed bool

	// Quota is what a client can use at once: the events of a window, or the burst of a
	// bucket.
	Quota int64

	// Remaining is what is left of the quota now. It is never negative. If units of the key
	// were charged ahead, it is what was left when this process and the store last spoke, less what this process
	// has spent since: others may have used some of it.
	Remaining int64

	// RetryAfter is 0 if the cost is allowed. Otherwise it is the exact wait until the same
	// cost would be allowed if nothing else is charged: one microsecond earlier it would be
	// refused. It is [Never] if no wait is long enough.
	RetryAfter time.Duration

	// NextAfter is the wait until Remaining grows by itself; 0 if the quota is full.
	NextAfter time.Duration

	// ResetAfter is the wait until the quota is full again if nothing else is charged; 0 if
	// it is full. After that the state does not have to be kept.
	ResetAfter time.Duration

	// Delay is how long an allowed request must wait for its turn in a queue; 0 for
	// algorithms that do not queue.
	Delay time.Duration

	// At is when the store decided, in microseconds since 1970 on its clock. The store
	// fills it in.
	At int64

	// Ahead is how long after At the charge counts as made. It is 0 unless the store's clock
	// has gone back, because time does not go back for a key, or something of a log was charged ahead. It is 0 if
	// nothing was charged.
	Ahead time.Duration

	// Units is how many units were charged ahead, see [Counter], and Lasts for how long from At on they may be spent.
	// The other numbers do not include them. An adjustment of them is of a charge that was booked at At + Lasts.
	Units int64
	Lasts time.Duration

	// Exempt reports whether the key is exempt, so that the limit was not consulted. Then the
	// request is allowed, nothing was charged, and the numbers are 0. The store fills in this
	// field and the ones below.
	Exempt bool

	// Uncharged reports whether the store could not write the charge of a check that is decided by itself. The request
	// passes all the same, and has nothing to give back.
	Uncharged bool

	// Banned reports whether the key is banned. Then it is refused, whatever is left of the
	// limit, and RetryAfter is at least the rest of the ban.
	Banned bool

	// BanBegins reports whether this refusal begins a ban. It is true once for each ban.
	BanBegins bool

	// Override is not empty if the limit of an override decided, which the numbers then
	// describe. It identifies that limit in the store's own form, so that an adjustment
	// changes the state that was charged.
	Override string
}

// Ban returns the decision for a key that is banned for another left microseconds; a
// negative left means that the ban has no end.
func (d Decision) Ban(left int64) Decision {
	wait := time.Duration(left) * time.Microsecond
	if left < 0 {
		d.RetryAfter, d.NextAfter = Never, 0
	} else {
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

// Turn returns when the request may leave, in microseconds since 1970 on the store's clock.
func (d *Decision) Turn() int64 { return d.At + d.Delay.Microseconds() }

// Booked returns when the charge counts as made, in microseconds since 1970 on the store's
// clock.
func (d *Decision) Booked() int64 { return d.At + d.Ahead.Microseconds() }

// never is [Never] in the microseconds that algorithms return, in Lua and in Redis's replies
// too.
const never = -1

// answer makes a decision about a limit of which so many events are used, with the charge if the cost was charged: that
// counts as made at booked. until returns the instant from which at most n events are used, fewer than now.
func answer(allowed bool, quota, used, cost, now, booked int64, until func(n int64) int64) Decision {
	retry, next, reset := int64(0), int64(0), int64(0)
	switch {
	case allowed && cost > 0:
		retry = booked - now
	case allowed:
	case cost > quota:
		retry = never
	case cost > max(0, quota-used): // else something besides the limit refuses
		retry = until(quota-cost) - now
	}
	if used > 0 && quota > 0 {
		next = until(min(used, quota)-1) - now
		reset = until(0) - now
	}
	return Micros(allowed, quota, max(0, quota-used), retry, next, reset, 0)
}

// Micros makes a decision of the numbers that an algorithm returns, in Go or in Lua: times
// in microseconds, with -1 for [Never]. An allowed cost needs no wait; retry then says how
// far ahead of the clock the charge is booked.
func Micros(allowed bool, quota, remaining, retry, next, reset, delay int64) Decision {
	d := Decision{
		Allowed:    allowed,
		Quota:      quota,
		Remaining:  remaining,
		RetryAfter: time.Duration(retry) * time.Microsecond,
		NextAfter:  time.Duration(next) * time.Microsecond,
		ResetAfter: time.Duration(reset) * time.Microsecond,
		Delay:      time.Duration(delay) * time.Microsecond,
	}
	if allowed {
		d.RetryAfter, d.Ahead = 0, d.RetryAfter
	} else if retry == never {
		d.RetryAfter = Never
	}
	return d
}
