package lend

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// The bounds of a period, which is how often a borrower asks.
const (
	MinPeriod = 10 * time.Millisecond
	MaxPeriod = 10 * time.Second
)

// Lendable reports whether parts of limits like this can be lent. A process keeps slots of a
// [Leaser] instead: see [Slots].
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
		return fmt.Errorf("lend must be from %v to %v, got %v", MinPeriod, MaxPeriod, period)
	case period%time.Microsecond != 0:
		return fmt.Errorf("lend must be a whole number of microseconds, got %v", period)
	case l.Mode == algorithms.ModeQueue:
		return fmt.Errorf("lend has no meaning for mode %s: a queue is about the order of all requests; leave it out", algorithms.ModeQueue)
	case !Lendable(a, l):
		leaser, ok := a.(algorithms.Leaser)
		if !ok {
			return fmt.Errorf("lend is not for algorithm %s: leave it out", a.Name())
		}
		p, err := leaser.Prepare(l)
		if lease := time.Duration(p[1]) * time.Microsecond; err == nil && leasePeriods*period > lease {
			return fmt.Errorf("lend must be at most a third of the lease %v, because slots are renewed so often, got %v", lease, period)
		}
	case l.Window > 0 && leasePeriods*period > l.Window:
		return fmt.Errorf("lend must be at most a third of the window %v, because a loan lasts three times as long, got %v", l.Window, period)
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
