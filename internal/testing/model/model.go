// Package model decides as the algorithms do, in a slow way that is obviously right: it keeps
// all charges in a list, computes with exact fractions, and finds every wait by trying later
// and later instants. Tests compare the stores with it.
//
// It has the rules but none of the formulas: how much a charge takes, how it comes back, that
// time does not go back for a key, and which times count as damaged. Package algorithms says when windows of the
// calendar begin, and which limits share a state. Its TestCalendar, and TestFamilies of package redisstore, show that.
package model

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// day is a day in microseconds.
const day = 24 * 3600 * 1_000_000

// century is the longest step back of a clock that is taken as real. A log or a lease further ahead is damaged.
const century = 36525 * day

// horizon is longer than any wait that ends, in microseconds: 35 years.
const horizon = 1 << 50

// Key is what the model remembers of one key, separately for each family of limits.
type Key struct {
	algorithm algorithms.Algorithm
	memories  map[string]memory // by family
	charged   map[string]int64  // when charges were decided, by name
	forgotten map[string]int64  // and those before the last reset
}

// memory is what an algorithm remembers. Only charge, ahead and adjust change it.
type memory interface {
	// asOf returns a copy of what the key remembers at now. What is further ahead than a window is
	// from before the clock went back, so all of its times are moved back: see moved.
	asOf(l algorithms.Limit, now int64) memory

	// left returns how much of the quota is left at now.
	left(l algorithms.Limit, now int64) int64

	// charge charges a cost that fits, under a name.
	charge(l algorithms.Limit, now, cost int64, name string)

	// booked returns when the last charge counts as made.
	booked() int64

	// ahead charges up to want units ahead, beside a cost that was just charged at now. It returns how many it has
	// charged, and for how long from now they may be spent.
	ahead(l algorithms.Limit, now, cost, want int64) (units, lasts int64)

	// adjust changes what was charged at an instant under a name. The charge was decided at its turn.
	adjust(l algorithms.Limit, now, at, turn, delta int64, name string)
}

// charges are what was charged, in this order.
type charges []charge

type charge struct {
	at, cost int64
	name     string
	back     *big.Rat // what is given back to a bucket, if this is a refund; then the cost is 0
}

func (c charges) booked() int64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].at
}

// earlier returns a copy with all times moved back.
func (c charges) earlier(back int64) charges {
	c = slices.Clone(c)
	for i := range c {
		c[i].at -= back
	}
	return c
}

// sum returns how much was charged from an instant on.
func (c charges) sum(from int64) (all int64) {
	for _, one := range c {
		if one.at >= from {
			all += one.cost
		}
	}
	return all
}

// giveBack takes a cost off the charges that match, the first ones first.
func (c charges) giveBack(cost int64, match func(at int64) bool) {
	for i := range c {
		if match(c[i].at) {
			gone := min(cost, c[i].cost)
			c[i].cost -= gone
			cost -= gone
		}
	}
}

// quota returns what a client without charges has.
func quota(l algorithms.Limit) int64 {
	if l.Burst == 0 || l.Events == 0 {
		return l.Events
	}
	return l.Burst
}

// half returns how many units of what is left are charged ahead.
func half(left, want int64) int64 { return max(0, min(want, left/2)) }

// moved returns by how much a memory is moved back whose latest time is ahead of now: not at all if it is ahead
// by a window at most, and else by as many periods as it takes until it is not ahead. A period is twice as long
// as the memory counts for anything.
func moved(latest, now, window, counts int64) int64 {
	if latest-now <= window {
		return 0
	}
	period := 2 * counts
	return (latest - now + period - 1) / period * period
}

// New returns a key that was never seen.
func New(algorithm string) *Key {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		panic(err)
	}
	return &Key{a, make(map[string]memory), make(map[string]int64), make(map[string]int64)}
}

// Reset forgets all. What was charged is not given back later.
func (k *Key) Reset() {
	clear(k.memories)
	maps.Copy(k.forgotten, k.charged)
}

// memory returns what the key remembers of the limit's family.
func (k *Key) memory(l algorithms.Limit) memory {
	if m := k.memories[k.algorithm.Family(l)]; m != nil {
		return m
	}
	switch k.algorithm.Name() {
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
	panic(fmt.Sprintf("no model of %q", k.algorithm.Name()))
}

// keep keeps what the key remembers of the limit's family.
func (k *Key) keep(l algorithms.Limit, m memory) { k.memories[k.algorithm.Family(l)] = m }

// ask returns what the key remembers at now, and whether a cost passes. A refusal may let leases end earlier.
func (k *Key) ask(l algorithms.Limit, now, cost int64) (m memory, passes bool) {
	m = k.memory(l).asOf(l, now)
	passes = fits(m, l, now, cost)
	if held, ok := m.(*leases); ok && !passes {
		held.shorten(l, now)
		k.keep(l, m)
	}
	return m, passes
}

// fits reports whether a cost passes at now: if as much is left, and if it does not have to wait too long in a queue.
func fits(m memory, l algorithms.Limit, now, cost int64) bool {
	if b, ok := m.(*bucket); ok && l.Mode == algorithms.ModeQueue && l.MaxWait > 0 && cost > 0 {
		if !b.idle(l, now+l.MaxWait.Microseconds()) {
			return false
		}
	}
	return cost <= m.left(l, now)
}

// Take decides on a cost at now, and charges it under a name if it fits. If guess is not nil,
// its waits are tried before a search for the right ones. They only make Take faster.
func (k *Key) Take(l algorithms.Limit, now, cost int64, name string, guess *algorithms.Decision) algorithms.Decision {
	if guess == nil {
		guess = &algorithms.Decision{RetryAfter: none, NextAfter: none, ResetAfter: none, Delay: none}
	}
	m, passes := k.ask(l, now, cost)
	d := algorithms.Decision{Quota: quota(l), Allowed: passes, At: now}
	switch {
	case !passes:
		d.RetryAfter = first(guess.RetryAfter, func(wait int64) bool { return fits(m, l, now+wait, cost) })
	case cost > 0:
		if b, ok := m.(*bucket); ok && l.Mode == algorithms.ModeQueue {
			d.Delay = first(guess.Delay, func(wait int64) bool { return b.idle(l, now+wait) })
		}
		k.charge(m, l, now, cost, name)
		d.Ahead = time.Duration(max(0, m.booked()-now)) * time.Microsecond
	}
	d.Remaining = m.left(l, now)
	if d.Remaining < d.Quota {
		d.NextAfter = first(guess.NextAfter, func(wait int64) bool { return m.left(l, now+wait) > d.Remaining })
		d.ResetAfter = first(guess.ResetAfter, func(wait int64) bool { return m.left(l, now+wait) == d.Quota })
	}
	return d
}

// Admit is Take without the waits. It reports whether the cost fits.
func (k *Key) Admit(l algorithms.Limit, now, cost int64, name string) bool {
	m, passes := k.ask(l, now, cost)
	if passes {
		k.charge(m, l, now, cost, name)
	}
	return passes
}

// charge charges a cost that fits to a memory of the key.
func (k *Key) charge(m memory, l algorithms.Limit, now, cost int64, name string) {
	m.charge(l, now, cost, name)
	k.keep(l, m)
	k.charged[name] = now
}

// Ahead charges units ahead, under a name, beside a cost that Take has just charged. A limit
// without a hold charges none.
func (k *Key) Ahead(l algorithms.Limit, now, cost, want int64, name string) (units int64, lasts time.Duration) {
	if l.Hold == 0 {
		return 0, 0
	}
	m := k.memory(l).asOf(l, now)
	units, micros := m.ahead(l, now, cost, want)
	if units == 0 {
		return 0, 0
	}
	k.keep(l, m)
	k.charged[name] = now
	return units, time.Duration(micros) * time.Microsecond
}

// Renew renews the lease under a name, or takes it again after a reset.
func (k *Key) Renew(l algorithms.Limit, now, cost int64, name string) {
	delete(k.forgotten, name)
	m := k.memory(l).asOf(l, now)
	m.charge(l, now, cost, name)
	k.keep(l, m)
}

// Adjust changes what was charged at an instant under a name, if the algorithm can. It does
// nothing under a limit of 0, because that has charged nothing.
func (k *Key) Adjust(l algorithms.Limit, now, at, delta int64, name string) {
	if _, gone := k.forgotten[name]; delta < 0 && gone {
		return
	}
	m := k.memory(l)
	_, lends := m.(*leases)
	if delta > 0 && !lends {
		m = m.asOf(l, now)
	}
	if lends || quota(l) > 0 {
		m.adjust(l, now, at, k.charged[name], delta, name)
	}
	k.keep(l, m)
}

// none means that there is no guess.
const none time.Duration = -1

// first returns the shortest wait for which ok is true. It is true for all longer waits too.
// So doubling and halving find the wait, and a guess is right if ok is true for it but false
// for one microsecond less.
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
