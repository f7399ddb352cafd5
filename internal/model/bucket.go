package model

import (
	"math/big"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// bucket is a bucket that leaks, and the token bucket seen from the other side: what
// was taken is poured in, and what comes back leaks out. Its level is a fraction.
//
// The rate must not change under it: the real ones compute what leaked out before the
// change at the new rate as well, from an instant that only they know. The burst may.
type bucket struct{ poured []poured }

// poured is a charge, and the burst that was the limit then.
type poured struct {
	at, cost, burst int64
	name            string
}

func (b *bucket) last() int64 {
	if len(b.poured) == 0 {
		return 0
	}
	return b.poured[len(b.poured)-1].at
}

func (b *bucket) known(now int64) memory {
	if b.last() > now+day {
		return &bucket{}
	}
	return &bucket{slices.Clone(b.poured)}
}

func (b *bucket) quota(l algorithms.Limit) int64 {
	if l.Burst == 0 || l.Events == 0 {
		return l.Events
	}
	return l.Burst
}

// level pours in one charge after the other, and lets leak out in between.
func (b *bucket) level(l algorithms.Limit, now int64) *big.Rat {
	level, at, began := new(big.Rat), int64(0), int64(0)
	for _, p := range b.poured {
		leak(l, spill(level, p.burst), began, at, p.at)
		if level.Sign() == 0 {
			began = p.at
		}
		level.Add(level, big.NewRat(p.cost, 1))
		at = p.at
	}
	return leak(l, spill(level, b.quota(l)), began, at, max(now, at))
}

// spill throws out what a lowered limit has no room for: whole events, so that the next
// one comes back when it would have come anyway.
func spill(level *big.Rat, burst int64) *big.Rat {
	if over := up(level) - burst; over > 0 {
		level.Sub(level, big.NewRat(over, 1))
	}
	return clamp(level)
}

// leak lets out what leaves a bucket from one instant to another, the second included:
// evenly, or all events of a window whenever one has passed since the bucket began to
// fill.
func leak(l algorithms.Limit, level *big.Rat, began, from, to int64) *big.Rat {
	length := l.Window.Microseconds()
	out := big.NewRat(to-from, length)
	if l.Refill == algorithms.RefillInterval {
		out.SetInt64((to-began)/length - (from-began)/length)
	}
	out.Mul(out, big.NewRat(l.Events, 1))
	return clamp(level.Sub(level, out))
}

func (b *bucket) left(l algorithms.Limit, now int64) int64 { return b.quota(l) - up(b.level(l, now)) }

func (b *bucket) fits(l algorithms.Limit, now, cost int64) bool {
	if l.Mode == algorithms.ModeQueue && l.MaxWait > 0 && cost > 0 && !b.idle(l, now+l.MaxWait.Microseconds()) {
		return false
	}
	return cost <= b.left(l, now)
}

func (b *bucket) idle(l algorithms.Limit, now int64) bool { return b.level(l, now).Sign() == 0 }

func (b *bucket) charge(l algorithms.Limit, now, cost int64, name string) {
	b.poured = append(b.poured, poured{max(now, b.last()), cost, b.quota(l), name})
}

// giveBack takes back the last turn in a queue. One with others behind it stays, for
// they have been told when to leave. That there was a charge is remembered: time does
// not go back.
func (b *bucket) giveBack(l algorithms.Limit, name string) {
	for i := len(b.poured) - 1; i >= 0 && l.Mode == algorithms.ModeQueue; i-- {
		if p := &b.poured[i]; p.cost > 0 {
			if p.name == name {
				p.cost = 0
			}
			return
		}
	}
}

// up rounds up.
func up(r *big.Rat) int64 {
	quotient, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Int64()
}

// clamp makes a negative number zero.
func clamp(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		r.SetInt64(0)
	}
	return r
}
