package redisstore_test

import (
	"math/big"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// account is a list of everything that one key of one zone was charged. It knows what each
// algorithm promises, and none of the formulas.
type account struct {
	rule   *store.Rule
	limit  algorithms.Limit
	booked []*booking
	start  int64 // start of the window that began with a request
}

// booking is a charge, or an additional cost when that was known.
type booking struct {
	at, turn int64
	cost     int64
	left     int64 // the part that was not given back
	ends     int64 // the end of its lease
}

func newAccount(rule *store.Rule) *account { return &account{rule: rule, limit: rule.Limit()} }

func (a *account) window() int64 { return a.limit.Window.Microseconds() }
func (a *account) lends() bool   { return a.limit.Lease > 0 }
func (a *account) leaks() bool   { return a.limit.Burst > 0 }
func (a *account) queues() bool  { return a.limit.Mode == algorithms.ModeQueue }

// quota returns how much a client may hold at once.
func (a *account) quota() int64 {
	if a.leaks() {
		return a.limit.Burst
	}
	return a.limit.Events
}

// book records a charge.
func (a *account) book(at, turn, cost int64) *booking {
	if at >= a.start+a.window() || a.sum(at) == 0 {
		a.start = at
	}
	b := &booking{at: at, turn: turn, cost: cost, left: cost, ends: at + a.limit.Lease.Microseconds()}
	a.booked = append(a.booked, b)
	return b
}

// owe records that a charge has cost more. A log records no more of it than the limit allows.
func (a *account) owe(now, more int64) {
	if a.rule.Algorithm().Name() == "sliding_window_log" {
		more = min(more, a.limit.Events)
	}
	a.book(now, 0, more)
}

// mayFit reports whether a cost can pass without breaking a promise: everything that was admitted
// and not given back stays within the limit.
func (a *account) mayFit(now, cost int64) bool {
	if a.leaks() {
		return a.brim(now, cost, func(b *booking) int64 { return b.left }, 1).Sign() <= 0
	}
	return a.sum(now)+cost <= a.limit.Events
}

// mustFit reports whether no charge that still counts keeps a cost from passing. For a bucket it
// cannot be known which part of a charge has come back by itself, so there it reports what must
// pass if nothing was given back.
func (a *account) mustFit(now, cost int64) bool {
	if a.leaks() {
		return a.brim(now, cost, func(b *booking) int64 { return b.cost }, 0).Sign() <= 0
	}
	return a.sum(now)+cost <= a.limit.Events
}

// brim returns by how much a bucket is overfull: the worst of all stretches of time from some
// charge until now. In each of them, the burst and the quota that comes back may be taken. With
// intervals that is as many portions as there are whole windows, or one more.
func (a *account) brim(now, cost int64, of func(*booking) int64, lumps int64) *big.Rat {
	worst, sum := big.NewRat(cost-a.limit.Burst, 1), cost-a.limit.Burst
	for i := len(a.booked) - 1; i >= 0; i-- {
		b := a.booked[i]
		sum += of(b)
		back := big.NewRat(now-b.at, a.window())
		if a.limit.Refill == algorithms.RefillInterval {
			back.SetInt64((now-b.at)/a.window() + lumps)
		}
		over := big.NewRat(sum, 1)
		over.Sub(over, back.Mul(back, big.NewRat(a.limit.Events, 1)))
		if over.Cmp(worst) > 0 {
			worst = over
		}
	}
	return worst
}

// sum returns how much of what was charged and not given back counts now.
func (a *account) sum(now int64) (n int64) {
	previous, window := int64(0), a.window()
	for _, b := range a.booked {
		counts := false
		switch a.rule.Algorithm().Name() {
		case "sliding_window_log":
			counts = now-b.at < window
		case "fixed_window":
			counts = b.at/window == now/window
			if a.limit.Align == algorithms.AlignFirstRequest {
				counts = b.at >= a.start && now < a.start+window
			}
		case "sliding_window_counter":
			counts = b.at/window == now/window
			if b.at/window+1 == now/window {
				previous += b.left
			}
		case "concurrency":
			counts = b.ends > now
		}
		if counts {
			n += b.left
		}
	}
	if previous > 0 { // the part that the last window still covers, rounded up
		n += (previous*(window-now%window) + window - 1) / window
	}
	return n
}

// spaced reports whether everything before a turn of a queue has leaked out when the turn comes.
func (a *account) spaced(turn int64) bool {
	sum := int64(0)
	for i := len(a.booked) - 1; i >= 0; i-- {
		b := a.booked[i]
		sum += b.left
		leaks := big.NewRat(sum*a.window(), a.limit.Events)
		if b.left > 0 && b.turn > 0 && big.NewRat(turn-b.turn+1, 1).Cmp(leaks) <= 0 { // turns are in whole microseconds
			return false
		}
	}
	return true
}

// recovers returns when all of the quota is back at the latest, whatever was lost, if nothing
// more is charged.
func (a *account) recovers(now int64) int64 {
	switch window := a.window(); {
	case a.lends():
		return now + a.limit.Lease.Microseconds()
	case a.rule.Algorithm().Name() == "sliding_window_counter":
		return now - now%window + 2*window
	case !a.leaks():
		return now + window
	}
	over := a.brim(now, a.limit.Burst, func(b *booking) int64 { return b.cost }, 0)
	windows := over.Quo(over, big.NewRat(a.limit.Events, 1))
	wait := windows.Mul(windows, big.NewRat(a.window(), 1))
	micros := new(big.Int).Quo(wait.Num(), wait.Denom()).Int64() + 1
	if a.limit.Refill == algorithms.RefillInterval {
		micros += a.window() // the window that has begun
	}
	return now + micros
}
