package algorithms

import "fmt"

// SlidingWindowLog remembers every charge and never admits more than events in any window,
// wherever the window starts. It is exact, and its price is an entry for each charge. An
// event as old as the window no longer counts.
//
// A charge of cost n counts for n events and is one entry. Expired charges are removed when
// the next charge is recorded.
type SlidingWindowLog struct{}

// Name implements [Algorithm].
func (SlidingWindowLog) Name() string { return "sliding_window_log" }

// Prepare implements [Algorithm]. The parameters are events, and the window and the hold in microseconds.
func (a SlidingWindowLog) Prepare(l Limit) (Params, error) {
	if err := l.validate(a.Name(), supports{window: true, hold: true}); err != nil {
		return Params{}, err
	}
	if l.Events > MaxLogEvents {
		return Params{}, fmt.Errorf("events must be at most %d for %s, got %d; use algorithm token_bucket",
			MaxLogEvents, a.Name(), l.Events)
	}
	return Params{l.Events, l.Window.Microseconds(), l.Hold.Microseconds()}, nil
}

// Decide implements [Recorder].
func (a SlidingWindowLog) Decide(l *Log, p Params, now, cost int64) Decision {
	events, window := p[0], p[1]
	clock := now
	now, t, expired := a.open(l, p, now)
	live := l.Events(expired, l.Len())
	used, allowed := live, cost <= max(0, events-live)
	if allowed {
		used += cost
	}
	return answer(allowed, events, used, cost, now, now+t-clock, func(n int64) int64 {
		if gone := used - n - 1; gone < live {
			return l.At(l.Holding(expired, gone)) + window
		}
		return t + window
	})
}

// Adjust implements [Recorder]. A late charge leaves at most twice the events of the limit in
// the log, so that the debt is bounded. If a larger limit has already recorded more than
// that, their number stays.
func (a SlidingWindowLog) Adjust(l *Log, p Params, now, at, delta int64) {
	events := p[0]
	switch {
	case events == 0: // nothing was charged
		return
	case delta <= 0:
		l.Remove(at, -delta)
		return
	}
	_, _, expired := a.open(l, p, now)
	most := max(2*events, l.Events(expired, l.Len()))
	a.Record(l, p, now, min(delta, events), 0)
	if over := l.Events(0, l.Len()) - most; over > 0 {
		l.ForgetEvents(over)
	}
}

// open returns the time at which a log counts, when the next charge counts as made, and how many charges have left the
// window that ends now. The next charge is made now, or at the time of the newest charge if that is later. If a log is so far
// ahead that its charges are moved back, the times in it stay, and the time is moved instead, until the log has expired: see
// backToNow.
func (SlidingWindowLog) open(l *Log, p Params, now int64) (at, next int64, expired int) {
	newest := l.Newest()
	if newest-now > p[1] {
		now += backToNow(newest-now, p[1])
	}
	return now, max(now, newest), l.Before(now - p[1] + 1)
}
