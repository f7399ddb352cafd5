package model

import (
	"math/big"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// bucket models both buckets as one that leaks: what is taken is poured in, and what comes
// back leaks out. Its level is a fraction. Limits with larger bursts and late costs fill it
// beyond a limit's burst.
type bucket struct{ charges }

// asOf moves a bucket back that is further ahead than it takes to be empty.
func (b *bucket) asOf(l algorithms.Limit, now int64) memory {
	last := b.booked()
	if last <= now || l.Events == 0 {
		return &bucket{b.earlier(0)}
	}
	counts := first(none, func(wait int64) bool { return b.idle(l, last+wait) }).Microseconds()
	if counts == 0 {
		return &bucket{}
	}
	return &bucket{b.earlier(moved(last, now, counts, counts))}
}

func (b *bucket) level(l algorithms.Limit, now int64) *big.Rat {
	level, _ := b.pour(l, now)
	return level
}

// pour pours in one charge after the other, with leaks in between. It returns the level, and since
// when the bucket has not been empty.
func (b *bucket) pour(l algorithms.Limit, now int64) (level *big.Rat, began int64) {
	level = new(big.Rat)
	at := int64(0)
	for _, p := range b.charges {
		leak(l, level, began, at, p.at)
		if level.Sign() == 0 {
			began = p.at
		}
		level.Add(level, big.NewRat(p.cost, 1))
		if p.back != nil {
			clamp(level.Sub(level, p.back))
		}
		at = p.at
	}
	return leak(l, level, began, at, max(now, at)), began
}

// maxDebt returns how much leaks out in a day.
func maxDebt(l algorithms.Limit) int64 {
	most := new(big.Int).Mul(big.NewInt(day), big.NewInt(l.Events))
	most.Div(most, big.NewInt(l.Window.Microseconds()))
	if most.Cmp(big.NewInt(1<<52)) > 0 {
		return 1 << 52
	}
	return most.Int64()
}

// leak subtracts what leaks out after one instant, up to and including another: evenly, or
// all events of a window whenever a window has passed since the bucket began to fill.
func leak(l algorithms.Limit, level *big.Rat, began, from, to int64) *big.Rat {
	length := l.Window.Microseconds()
	out := big.NewRat(to-from, length)
	if l.Refill == algorithms.RefillInterval {
		out.SetInt64(floor(to-began, length) - floor(from-began, length))
	}
	out.Mul(out, big.NewRat(l.Events, 1))
	return clamp(level.Sub(level, out))
}

func (b *bucket) left(l algorithms.Limit, now int64) int64 {
	return max(0, quota(l)-up(b.level(l, now)))
}

// idle reports whether the next request may leave at now, because none waits.
func (b *bucket) idle(l algorithms.Limit, now int64) bool { return b.level(l, now).Sign() == 0 }

func (b *bucket) charge(l algorithms.Limit, now, cost int64, name string) {
	b.charges = append(b.charges, charge{at: max(now, b.booked()), cost: cost, name: name})
}

// ahead pours in as much as keeps the bucket from being empty before the hold ends, without the cost and the units, and
// the units. What leaks out all at once needs no such pad: units last until then.
func (b *bucket) ahead(l algorithms.Limit, now, cost, want int64) (units, lasts int64) {
	lasts, t := l.Hold.Microseconds(), max(now, b.booked())
	pad := int64(0)
	if length := l.Window.Microseconds(); l.Refill == algorithms.RefillInterval {
		level, began := b.pour(l, now)
		if level.Sign() == 0 {
			began = t
		}
		lasts = min(lasts, began+(floor(t-began, length)+1)*length-now-1)
	} else {
		leaks := big.NewRat(lasts, length)
		leaks.Mul(leaks, big.NewRat(l.Events, 1))
		before := b.level(l, now)
		pad = max(0, up(leaks.Sub(leaks, before.Sub(before, big.NewRat(cost, 1)))))
	}
	if units = half(b.left(l, now)-pad, want); units > 0 {
		b.charge(l, now, units+pad, "")
	}
	return units, lasts
}

// adjust pours in more, or takes out what cannot have leaked out since. A charge is assumed to
// leak from when it was made, unless it was the last one. If anything can be charged ahead, it is assumed to leak a hold
// earlier, because a pad may have counted on it.
func (b *bucket) adjust(l algorithms.Limit, now, at, turn, delta int64, name string) {
	switch {
	case delta > 0: // beyond the limit if necessary, but by no more than leaks out in a day
		room := quota(l) + maxDebt(l) - up(b.level(l, now))
		if room > 0 {
			b.charge(l, now, min(delta, algorithms.MaxEvents, room), "")
		}
	case l.Mode == algorithms.ModeQueue:
		b.giveBackTurn(-delta, name)
	default:
		level, began := b.pour(l, now)
		back := big.NewRat(min(-delta, quota(l)), 1)
		from := at
		if l.Hold == 0 {
			turn = at
		} else if l.Refill != algorithms.RefillInterval {
			from = at - l.Hold.Microseconds()
		}
		if b.chargedAfter(turn) {
			leak(l, back, began, min(from, now), now)
		}
		if level.Sign() > 0 && back.Sign() > 0 {
			b.charges = append(b.charges, charge{at: max(now, b.booked()), back: back})
		}
	}
}

// chargedAfter reports whether anything was charged after an instant.
func (b *bucket) chargedAfter(at int64) bool {
	return slices.ContainsFunc(b.charges, func(p charge) bool { return p.at > at && p.cost > 0 })
}

// giveBackTurn takes back the last turn in a queue. A turn with others behind it stays,
// because their requests know when to leave. The time of the charge is kept, because time
// does not go back for a key.
func (b *bucket) giveBackTurn(cost int64, name string) {
	for i := len(b.charges) - 1; i >= 0; i-- {
		if p := &b.charges[i]; p.cost > 0 {
			if p.name == name && p.cost == cost {
				p.cost = 0
			}
			return
		}
	}
}

// floor returns a/b rounded down, also below 0.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
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
