package algorithms

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// TokenBucket is a bucket that holds burst tokens. In each window, events of them come
// back: evenly with refill smooth, or all at once at the end of the window with refill
// interval, where windows are counted from the first request after the bucket was full. A
// request takes its cost in tokens, or is refused.
//
// With refill smooth it admits at most burst + rate x time in any time, and is the same
// limit as GCRA with a tolerance of burst. With refill interval, up to 2 x burst - 1 events
// can pass around a refill.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986; GCRA: ITU-T I.371, annex A.
//
// State: the anchor, an instant at which the bucket was full; the tokens taken since
// the anchor; the time of the last charge. The tokens that have come back since the anchor
// are elapsed*events/window, rounded down. So the pair of anchor and tokens is a
// fractional level without a fraction. Whole windows are removed from both, which keeps
// them small. More tokens than the burst may be taken: by a limit of the same rate with a
// larger burst, or as a debt, which only an adjustment leads to. Then nothing fits until
// enough has come back.
type TokenBucket struct{}

// Name implements [Algorithm].
func (TokenBucket) Name() string { return "token_bucket" }

// Prepare implements [Algorithm]. The parameters are the burst, the rate as a reduced
// fraction of tokens and microseconds, 1 for refill interval, where the fraction is
// events and window instead, and as the last one the hold in microseconds.
func (a TokenBucket) Prepare(l Limit) (Params, error) {
	if err := oneOf("refill", l.Refill, RefillSmooth, RefillInterval); err != nil {
		return Params{}, err
	}
	p, err := prepareBucket(l, a.Name(), supports{window: true, burst: true, refill: true, hold: true})
	if err == nil && l.Refill == RefillInterval && l.Events > 0 {
		p[1], p[2], p[3] = l.Events, l.Window.Microseconds(), 1
	}
	return p, err
}

// prepareBucket returns the parameters that all buckets have: the burst, and the rate as a
// reduced fraction.
func prepareBucket(l Limit, name string, has supports) (Params, error) {
	if err := l.validate(name, has); err != nil {
		return Params{}, err
	}
	burst := l.Burst
	if burst == 0 || l.Events == 0 {
		burst = l.Events
	}
	window := l.Window.Microseconds()
	if l.Events == 0 {
		return Params{0, 1, window, 5: l.Hold.Microseconds()}, nil
	}
	if recovery := float64(burst) / float64(l.Events) * float64(l.Window); recovery > float64(MaxRecovery) {
		return Params{}, fmt.Errorf("burst %d takes %.0f days to come back at %d per %s, must be at most %.0f days",
			burst, recovery/float64(24*time.Hour), l.Events, duration.Format(l.Window), MaxRecovery.Hours()/24)
	}
	g := gcd(l.Events, window)
	return Params{burst, l.Events / g, window / g, 5: l.Hold.Microseconds()}, nil
}

// Take implements [Counter].
func (TokenBucket) Take(s State, p Params, now, cost int64) (State, Decision) {
	b := open(s, p, now)
	allowed := cost <= b.remaining
	retry := int64(0)
	switch {
	case !allowed:
		retry = b.retry(cost, now)
	case cost > 0:
		retry = b.t - now
	}
	s, next, reset := b.close(s, allowed, cost, now)
	return s, Micros(allowed, b.burst, b.remaining, retry, next, reset, 0)
}

// Adjust implements [Counter]. See bucket.adjust for what is given back.
func (TokenBucket) Adjust(s State, p Params, now, at, turn, delta int64) State {
	b := open(s, p, now)
	return b.adjust(s, at, turn, p[5], delta)
}

// bucket is a bucket's state at one time.
type bucket struct {
	burst, events, window int64
	lumps                 bool  // tokens come back only at the end of a window
	anchor, taken, back   int64 // see TokenBucket; back is the tokens back since the anchor
	last, t               int64 // the time of the last charge; now, or last if that is later
	remaining             int64
}

// longestRecovery is more than any time in which tokens come back that limits and adjustments
// can lead to, in microseconds. A state that takes longer is damaged.
const longestRecovery = 1e15

// open returns the bucket of a state, brought up to now.
func open(s State, p Params, now int64) bucket {
	b := bucket{burst: p[0], events: p[1], window: p[2], lumps: p[3] != 0, anchor: s[0], taken: s[1], last: s[2]}
	if b.taken < 0 || b.taken >= maxExact || b.anchor < 0 || b.anchor > b.last || b.last >= maxExact ||
		float64(b.taken)*float64(b.window) > float64(b.events)*longestRecovery {
		b.anchor, b.taken, b.last = now, 0, now
	}
	b.t = now
	if b.last > now {
		b.stepBack(now)
		b.t = max(now, b.last)
	}
	b.drain(b.t)
	b.remaining = max(0, b.burst-(b.taken-b.back))
	return b
}

// stepBack moves a bucket back that is further ahead of now than it takes to be full again.
func (b *bucket) stepBack(now int64) {
	counts := b.after(b.taken) - b.last
	if b.last-now <= counts {
		return
	}
	back := b.last - now
	if counts > 0 {
		back = backToNow(back, counts)
	}
	b.anchor -= back
	b.last -= back
	if counts <= 0 || b.anchor < 0 {
		b.taken = 0
	}
}

// drain moves the anchor towards t by whole windows, and computes how many tokens have come
// back since. The anchor of a full bucket is t.
func (b *bucket) drain(t int64) {
	b.back = 0
	if b.taken > 0 {
		n := (t - b.anchor) / b.window
		if n <= b.taken/b.events {
			b.anchor += n * b.window
			b.taken -= n * b.events
			if !b.lumps {
				b.back = mulDiv(t-b.anchor, b.events, b.window)
			}
			if b.back < b.taken {
				return
			}
		}
	}
	b.anchor, b.taken, b.back = t, 0, 0
}

// after returns the instant at which n tokens have come back since the anchor.
func (b *bucket) after(n int64) int64 {
	if b.lumps {
		return b.anchor + (n+b.events-1)/b.events*b.window
	}
	return b.anchor + mulDivUp(n, b.window, b.events)
}

// retry returns the wait until a cost fits.
func (b *bucket) retry(cost, now int64) int64 {
	if cost > b.burst {
		return never
	}
	return b.after(b.taken+cost-b.burst) - now
}

// close charges an allowed cost. It returns the state to keep, the wait until more is
// available, and the wait until all is.
func (b *bucket) close(s State, allowed bool, cost, now int64) (after State, next, reset int64) {
	if allowed && cost > 0 {
		b.taken += cost
		b.remaining -= cost
		s = State{b.anchor, b.taken, b.t}
	}
	if b.remaining < b.burst {
		next = b.after(max(b.back, b.taken-b.burst)+1) - now
		reset = b.after(b.taken) - now
	}
	return s, next, reset
}
