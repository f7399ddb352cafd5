package algorithms

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/lua"
)

// SlidingWindowLog remembers every charge and admits never more than events in any
// window, wherever it starts. It is exact, and pays with an entry for each charge. An
// event whose age is the window no longer counts.
//
// A charge of cost n is n events, and one entry. Charges are forgotten when a later one
// is recorded after they have expired.
type SlidingWindowLog struct{}

// Name implements [Algorithm].
func (SlidingWindowLog) Name() string { return "sliding_window_log" }

// Script implements [Algorithm].
func (SlidingWindowLog) Script() string { return lua.SlidingWindowLog }

// Prepare implements [Algorithm]. The parameters are events and window.
func (a SlidingWindowLog) Prepare(l Limit) (Params, error) {
	if err := l.validate(a.Name(), has{window: true}); err != nil {
		return Params{}, err
	}
	if l.Events > MaxLogEvents {
		return Params{}, fmt.Errorf("events must be at most %d for %s, got %d; use algorithm token_bucket",
			MaxLogEvents, a.Name(), l.Events)
	}
	return Params{l.Events, l.Window.Microseconds()}, nil
}

// Decide implements [Recorder].
func (a SlidingWindowLog) Decide(l *Log, p Params, now, cost int64) Decision {
	events, window := p[0], p[1]
	t, expired := a.expired(l, p, now)
	live := l.Events(expired, l.Len())

	remaining := max(0, events-live)
	allowed := cost <= remaining
	// The first event whose end makes room; under a limit that was lowered not the oldest.
	first, newest := t, t
	if live > 0 {
		newest = l.Newest()
		if live <= events {
			first = l.At(expired)
		} else if events > 0 {
			first = l.At(l.Holding(expired, live-events))
		}
	}
	retry := int64(0)
	switch {
	case allowed && cost > 0:
		remaining -= cost
		newest, retry = t, t-now
	case allowed:
	case cost > events:
		retry = never
	default:
		retry = l.At(l.Holding(expired, live+cost-events-1)) + window - now
	}

	next, reset := int64(0), int64(0)
	if remaining < events {
		next = first + window - now
		reset = newest + window - now
	}
	return Micros(allowed, events, remaining, retry, next, reset, 0)
}

// Record implements [Recorder].
func (a SlidingWindowLog) Record(l *Log, p Params, now, cost int64) {
	t, expired := a.expired(l, p, now)
	l.Forget(expired)
	l.Append(t, cost)
}

// Adjust implements [Recorder]. Twice as many events as the limit has are kept, and no
// more: not all that passed can be given back and leave room before the others expire.
// What a larger limit has recorded beyond that is not made fewer either.
func (a SlidingWindowLog) Adjust(l *Log, p Params, now, at, delta int64) {
	events := p[0]
	switch {
	case events == 0: // it has charged nothing
		return
	case delta <= 0:
		l.Remove(at, -delta)
		return
	}
	_, expired := a.expired(l, p, now)
	most := max(2*events, l.Events(expired, l.Len()))
	a.Record(l, p, now, min(delta, events))
	if over := l.Events(0, l.Len()) - most; over > 0 {
		l.ForgetEvents(over)
	}
}

// expired returns the time that counts and how many charges have left the window.
func (SlidingWindowLog) expired(l *Log, p Params, now int64) (t int64, expired int) {
	if l.Newest() > now+maxStepBack {
		return now, l.Len()
	}
	t = max(now, l.Newest())
	return t, l.Before(t - p[1] + 1)
}
