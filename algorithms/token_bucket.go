package algorithms

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
)

// TokenBucket is a bucket of burst tokens that come back evenly, events of them in
// each window. A request takes its cost in tokens or is refused.
//
// It admits at most burst + rate x time in any time, and it is the same limit as
// GCRA with a tolerance of burst.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986; GCRA: ITU-T I.371, annex A.
//
// State: the anchor, an instant at which the bucket was full; the tokens taken since
// the anchor; the time of the last charge. The tokens back since the anchor are
// elapsed*events/window rounded down, so the pair stands for a fractional level
// without a fraction. Whole windows are taken off both, which keeps them small.
type TokenBucket struct{}

// Name implements [Algorithm].
func (TokenBucket) Name() string { return "token_bucket" }

// Script implements [Algorithm].
func (TokenBucket) Script() string { return lua.TokenBucket }

// Prepare implements [Algorithm]. The parameters are the burst and the rate as a
// reduced fraction: tokens per microseconds.
func (TokenBucket) Prepare(l Limit) (Params, error) {
	if err := l.validate(); err != nil {
		return Params{}, err
	}
	burst := l.Burst
	if burst == 0 || l.Events == 0 {
		burst = l.Events
	}
	window := l.Window.Microseconds()
	if l.Events == 0 {
		return Params{0, 1, window}, nil
	}
	if recovery := float64(burst) / float64(l.Events) * float64(l.Window); recovery > float64(MaxRecovery) {
		return Params{}, fmt.Errorf("burst %d takes %.0f days to come back at %d per %v, must be at most %.0f days",
			burst, recovery/float64(24*time.Hour), l.Events, l.Window, MaxRecovery.Hours()/24)
	}
	g := gcd(l.Events, window)
	return Params{burst, l.Events / g, window / g}, nil
}

// Take implements [Counter].
func (TokenBucket) Take(s State, p Params, now, cost int64) (State, Decision) {
	burst, events, window := p[0], p[1], p[2]
	anchor, taken, last := s[0], s[1], s[2]
	if taken < 0 || taken >= maxExact || anchor < 0 || anchor > last || last > now+maxStepBack {
		anchor, taken, last = now, 0, now
	}
	t := max(now, last)

	if taken > burst {
		// A limit that was lowered holds no more than it can, as of the last charge, so
		// that it does not matter how often it is looked at.
		var back int64
		anchor, taken, back = drain(anchor, taken, last, events, window)
		taken = min(taken, burst+back)
	}
	anchor, taken, back := drain(anchor, taken, t, events, window)

	remaining := burst - (taken - back)
	allowed := cost <= remaining
	retry := int64(0)
	switch {
	case allowed && cost > 0:
		taken += cost
		remaining -= cost
		s = State{anchor, taken, t}
	case allowed:
	case cost > burst:
		retry = never
	default:
		retry = anchor + mulDivUp(back+cost-remaining, window, events) - now
	}

	next, reset := int64(0), int64(0)
	if remaining < burst {
		next = anchor + mulDivUp(back+1, window, events) - now
		reset = anchor + mulDivUp(taken, window, events) - now
	}
	return s, Micros(allowed, burst, remaining, retry, next, reset, 0)
}

// drain moves the anchor of a bucket up to t by whole windows, and tells how many
// tokens have come back since it. The anchor of a full bucket is t.
func drain(anchor, taken, t, events, window int64) (int64, int64, int64) {
	back := int64(0)
	if taken > 0 {
		n := (t - anchor) / window
		if n > taken/events {
			return t, 0, 0
		}
		anchor += n * window
		taken -= n * events
		back = mulDiv(t-anchor, events, window)
	}
	if back >= taken {
		return t, 0, 0
	}
	return anchor, taken, back
}
