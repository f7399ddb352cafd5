// Package model decides what the algorithms decide, in the slowest way that is
// obviously right: it keeps all charges in a list, computes with exact fractions, and
// finds every wait by looking at later and later instants. Tests compare the stores
// with it.
//
// It knows the rules and none of the formulas: how much a charge takes, how it comes
// back, that time does not go back for a key, what is no longer believed.
package model

import (
	"fmt"
	"sort"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// day is how far the clock is believed to have gone back, in microseconds. What a key
// remembers of a later time than that counts as never seen.
const day = 24 * 3600 * 1_000_000

// horizon is a wait after which all comes back that ever does, in microseconds: 35 years.
const horizon = 1 << 50

// Key is what the model remembers of one key: for each family of limits by itself.
type Key struct {
	algorithm string
	memories  map[family]memory
}

// memory is how an algorithm remembers. Only charge and correct change it.
type memory interface {
	// known is a copy without what is not believed at now.
	known(now int64) memory

	// quota is what a client without charges has.
	quota(l algorithms.Limit) int64

	// left is how much of the quota is left at now.
	left(l algorithms.Limit, now int64) int64

	// fits says whether cost passes at now.
	fits(l algorithms.Limit, now, cost int64) bool

	// charge books a cost that fits, under a name.
	charge(l algorithms.Limit, now, cost int64, name string)

	// booked is the instant that the last charge counts as made at.
	booked() int64

	// correct changes what was charged at an instant under a name.
	correct(l algorithms.Limit, now, at, delta int64, name string)
}

// queue is a memory that makes requests wait.
type queue interface {
	// idle says that at now nobody waits and the next request may leave.
	idle(l algorithms.Limit, now int64) bool
}

// New is a key that was never seen.
func New(algorithm string) *Key { return &Key{algorithm, make(map[family]memory)} }

// memory is what the key remembers of the limit's family.
func (k *Key) memory(l algorithms.Limit) memory {
	if m := k.memories[k.family(l)]; m != nil {
		return m
	}
	switch k.algorithm {
	case "token_bucket", "leaky_bucket":
		return &bucket{}
	case "fixed_window":
		return &window{}
	case "sliding_window_log":
		return &log{}
	case "sliding_window_counter":
		return &counter{}
	case "concurrency":
		return &leases{}
	}
	panic(fmt.Sprintf("no model of %q", k.algorithm))
}

// Take decides on cost at now, and charges it under a name if it fits. Guess may hold
// waits that are tried before a search for them; they change how long Take takes, and
// nothing else.
func (k *Key) Take(l algorithms.Limit, now, cost int64, name string, guess *algorithms.Decision) algorithms.Decision {
	if guess == nil {
		guess = &algorithms.Decision{RetryAfter: none, NextAfter: none, ResetAfter: none, Delay: none}
	}
	m := k.memory(l).known(now)
	d := algorithms.Decision{Quota: m.quota(l), Allowed: m.fits(l, now, cost), At: now}
	switch {
	case !d.Allowed:
		d.RetryAfter = first(guess.RetryAfter, func(wait int64) bool { return m.fits(l, now+wait, cost) })
	case cost > 0:
		if q, ok := m.(queue); ok && l.Mode == algorithms.ModeQueue {
			d.Delay = first(guess.Delay, func(wait int64) bool { return q.idle(l, now+wait) })
		}
		m.charge(l, now, cost, name)
		k.memories[k.family(l)] = m
		d.Ahead = time.Duration(max(0, m.booked()-now)) * time.Microsecond
	}
	d.Remaining = m.left(l, now)
	if d.Remaining < d.Quota {
		d.NextAfter = first(guess.NextAfter, func(wait int64) bool { return m.left(l, now+wait) > d.Remaining })
		d.ResetAfter = first(guess.ResetAfter, func(wait int64) bool { return m.left(l, now+wait) == d.Quota })
	}
	return d
}

// Admit is Take for those who want to know no more than whether the cost fits.
func (k *Key) Admit(l algorithms.Limit, now, cost int64) bool {
	m := k.memory(l).known(now)
	if !m.fits(l, now, cost) {
		return false
	}
	m.charge(l, now, cost, "")
	k.memories[k.family(l)] = m
	return true
}

// Renew charges what is held under a name once more in place of the first time.
func (k *Key) Renew(l algorithms.Limit, now, cost int64, name string) {
	m := k.memory(l).known(now)
	m.charge(l, now, cost, name)
	k.memories[k.family(l)] = m
}

// Adjust changes what was charged at an instant under a name, where the algorithm can. A
// limit that allows nothing has charged nothing.
func (k *Key) Adjust(l algorithms.Limit, now, at, delta int64, name string) {
	m := k.memory(l)
	_, lends := m.(*leases)
	if delta > 0 && !lends {
		m = m.known(now)
	}
	if lends || m.quota(l) > 0 {
		m.correct(l, now, at, delta, name)
	}
	k.memories[k.family(l)] = m
}

// none is no guess.
const none time.Duration = -1

// first is the shortest wait at which ok holds. Once it does, it holds for good, so
// that doubling and halving find it, and a guess is right if ok holds then and did not
// a microsecond before.
func first(guess time.Duration, ok func(wait int64) bool) time.Duration {
	if w := guess.Microseconds(); guess != algorithms.Never && w > 0 && ok(w) && !ok(w-1) {
		return guess
	}
	if ok(0) {
		return 0
	}
	if !ok(horizon) {
		return algorithms.Never
	}
	high := 1
	for !ok(int64(high)) {
		high *= 2
	}
	return time.Duration(sort.Search(high, func(w int) bool { return ok(int64(w)) })) * time.Microsecond
}
