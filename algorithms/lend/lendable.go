package lend

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// The bounds of a period, which is how often a borrower asks. It is chosen by people, for a zone: a borrower chooses by
// itself which keys to borrow, from how often they come, and how long, from the period up to [Longest]. It does not choose
// whether a zone lends. Where it does, what was spent is charged when it is reported, late costs may exceed the limit by
// what others hold, and a few requests are refused although there is room. All of that grows with the period, and users
// can see it.
const (
	MinPeriod = 10 * time.Millisecond
	MaxPeriod = 10 * time.Second
)

// Lendable reports whether parts of limits like this can be lent.
//
// Turns in a queue are not lent, although order in a process and the rate of the fleet could be kept: a process would be
// lent turns, each of them a moment, and those that pass unused would be lost. But then a request waits where nobody is
// before it. Take a queue of 10 requests a second that is empty. One process is lent the turns at 0.1 and 0.2 s, and no
// request comes to it. A request at another process gets the turn at 0.3 s: one limiter would have let it pass at once, and
// its two successors too late by as much. If the other process may have the turns that pass unused, it must know that
// they do, which is a call for each request. A max_wait without a queue promises no order: the request asks again.
func Lendable(a algorithms.Algorithm, l algorithms.Limit) bool {
	if l.Mode == algorithms.ModeQueue {
		return false
	}
	switch a.(type) {
	case algorithms.TokenBucket, algorithms.LeakyBucket, algorithms.FixedWindow, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog:
		return true
	}
	return false
}

// Check checks that a limit can be lent, and a period. Its error names what would be right.
func Check(a algorithms.Algorithm, l algorithms.Limit, period time.Duration) error {
	switch {
	case period < MinPeriod || period > MaxPeriod:
		return fmt.Errorf("lend must be from %s to %s, got %s", duration.Format(MinPeriod), duration.Format(MaxPeriod), duration.Format(period))
	case period%time.Microsecond != 0:
		return fmt.Errorf("lend must be a whole number of microseconds, got %s", duration.Format(period))
	case l.Mode == algorithms.ModeQueue:
		return fmt.Errorf("lend has no meaning for mode %s: a queue is about the order of all requests; leave it out", algorithms.ModeQueue)
	case !Lendable(a, l):
		return fmt.Errorf("lend is not for algorithm %s: leave it out", a.Name())
	case l.Window > 0 && leasePeriods*period > l.Window:
		return fmt.Errorf("lend must be at most a third of the window %s, because a loan lasts three times as long, got %s", duration.Format(l.Window), duration.Format(period))
	}
	return nil
}

// Longest returns the longest time between two asks for a key that comes rarely: a loan that is a small
// part of what is free may last so much longer than others.
func Longest(l algorithms.Limit, period time.Duration) time.Duration {
	most := min(stretch*period, MaxLease*time.Microsecond/leasePeriods)
	if l.Window > 0 {
		most = min(most, l.Window/(10*leasePeriods))
	}
	return max(period, most)
}
