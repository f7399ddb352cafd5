package algorithms

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// buckets is what a token bucket and a leaky bucket have in common: all but their options.
//
// State: the anchor, an instant at which the bucket was full; the tokens taken since
// the anchor; the time of the last charge. The tokens that have come back since the anchor
// are elapsed*events/window, rounded down. So the pair of anchor and tokens is a
// fractional level without a fraction. Whole windows are removed from both, which keeps
// them small. More tokens than the burst may be taken: by a limit of the same rate with a
// larger burst, or as a debt, which only an adjustment leads to. Then nothing fits until
// enough has come back.
//
// A leaky bucket counts the events poured in as the tokens taken.
type buckets struct{}

func (buckets) lossy() {}

// Merges implements [Counter]. It is false for a queue, where each request has its own turn.
func (buckets) Merges(p Params) bool { return p[4] == 0 }

// Family implements [Algorithm]. It is the rate at which tokens come back as a reduced fraction, because 10 events per
// second are one per 100 milliseconds, and whether it is a queue. With refill interval it is the rate as it is.
func (buckets) Family(l Limit) string {
	events, window, kind := l.Events, l.Window, ""
	switch {
	case l.Refill == RefillInterval:
		kind = "-" + RefillInterval
	case events > 0 && window >= time.Microsecond:
		g := gcd(events, window.Microseconds())
		events, window = events/g, window/time.Duration(g)
	}
	if l.Mode == ModeQueue {
		kind = "-" + ModeQueue
	}
	return fmt.Sprintf("%dper%s%s", events, strings.Replace(duration.Format(window), "µ", "u", 1), kind)
}

// prepareBucket returns the parameters that all buckets have: the burst, the rate as a reduced
// fraction of tokens and microseconds, 1 for refill interval, where the fraction is events and
// window instead, 1 for a queue, and the hold in microseconds. A queue has its longest wait in
// microseconds plus one instead of the hold, or 0 if the wait has no bound.
func prepareBucket(l Limit, name string, has supports) (Params, error) {
	if err := l.validate(name, has); err != nil {
		return Params{}, err
	}
	p := Params{cmp.Or(l.Burst, l.Events), l.Events, l.Window.Microseconds(), 5: l.Hold.Microseconds()}
	recovery := float64(p[0]) / float64(l.Events) * float64(l.Window)
	switch {
	case l.Events == 0:
		p[0], p[1] = 0, 1
	case recovery > float64(MaxWindow):
		return Params{}, fmt.Errorf("burst %d takes %.0f days to come back at %d per %s, must be at most %.0f days",
			p[0], recovery/float64(24*time.Hour), l.Events, duration.Format(l.Window), MaxWindow.Hours()/24)
	case l.Refill == RefillInterval:
		p[3] = 1
	default:
		g := gcd(p[1], p[2])
		p[1], p[2] = p[1]/g, p[2]/g
	}
	switch {
	case l.Mode == ModeQueue && l.Hold != 0:
		return Params{}, errors.New("lend has no meaning for mode queue: each request has its own turn; leave it out")
	case l.Mode == ModeQueue:
		p[4] = 1
		if l.MaxWait > 0 {
			p[5] = l.MaxWait.Microseconds() + 1
		}
	}
	return p, nil
}

// Take implements [Counter].
func (buckets) Take(s State, p Params, now, cost int64) (State, Decision) {
	b := open(s, p, now)
	delay := int64(0)
	if p[4] != 0 && b.taken > 0 && cost > 0 {
		delay = b.after(b.taken) - now
	}
	over := p[5] > 0 && delay >= p[5]
	allowed := cost <= b.remaining && !over
	if allowed && cost > 0 {
		b.taken += cost
		s = State{b.anchor, b.taken, b.t}
	}
	d := answer(allowed, b.burst, b.taken-b.back, cost, now, b.t, func(n int64) int64 { return b.after(b.taken - n) })
	switch {
	case allowed:
		d.Delay = time.Duration(delay) * time.Microsecond
	case over:
		d.RetryAfter = max(d.RetryAfter, time.Duration(delay-p[5]+1)*time.Microsecond)
	}
	return s, d
}

// Ahead implements [Counter]. It pads the bucket so that it would be full no earlier than the hold ends, without the cost and
// the units. So these begin to come back only then, as if they were taken at that time. The pad does not count on the cost,
// because a refund may give that back. Tokens that come back all at once need no pad: units last until then. A queue charges
// nothing ahead.
func (buckets) Ahead(s State, p Params, now, cost, want int64) (after State, units, lasts int64) {
	if p[4] != 0 {
		return s, 0, 0
	}
	b, lasts, pad := open(s, p, now), p[5], int64(0)
	if b.lumps {
		lasts = min(lasts, b.anchor+b.window-now-1)
	} else {
		pad = max(0, mulDivUp(b.t+lasts-b.anchor, b.events, b.window)-(b.taken-cost))
	}
	if units = part(want, b.remaining-pad); units == 0 {
		return s, 0, 0
	}
	return State{b.anchor, b.taken + units + pad, b.t}, units, lasts
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
	if b.last > now {
		b.stepBack(now)
	}
	b.t = max(now, b.last)
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
