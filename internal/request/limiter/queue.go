package limiter

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
)

// delay returns how long an allowed request must wait for its turn.
func (v *Verdict) delay() (d time.Duration) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.queues() {
			d = max(d, e.Decision.Delay)
		}
	}
	return d
}

// queue waits for the request's turn, and reports whether the client has stayed. If the client
// leaves, the turn is handed on.
func (v *Verdict) queue(s pool.Session, delay time.Duration) bool {
	if _, ok := v.wait.clock.(clock.Sleeper); ok { // nobody leaves, so no turn is handed on
		return v.wait.pause(v.Request.Request, delay)
	}
	began := v.wait.clock.Now()
	w, e := v.join(s)
	switch {
	case w == nil:
		if v.wait.pause(v.Request.Request, delay) {
			return true
		}
		v.handOn(s, v.wait.clock.Now()-began)
	case v.wait.sleep(v.Request.Request, w.Ready()):
		e.setTurn(w.At())
		return true
	case s.Turns.Leave(w): // the client left at the moment when the turn came
		e.setTurn(w.At())
		v.handOn(s, v.wait.clock.Now()-began)
	}
	s.Adjust(v.giveBack((*Entry).unserved)...)
	return false
}

// unserved reports whether a charge is given back if the handlers behind do not get the request, besides turns: one that
// lasts until the request is over, one that its response decides on, or a turn in the queue of a dry run.
func (e *Entry) unserved() bool {
	return !e.queues() && (e.lease != "" || e.Decision.Delay > 0 || e.Zone.Charge.Matcher() != nil)
}

// join makes the request wait with others that hand their turns on. A request that waits in
// several queues leaves when the last of its turns has come, so it waits alone: then w is nil.
func (v *Verdict) join(s pool.Session) (w *turns.Waiter, in *Entry) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.queues() {
			if in != nil {
				return nil, nil
			}
			in = e
		}
	}
	return s.Turns.Join(in.turn(s, 0)), in
}

// handOn gives up all turns of a request that has waited alone.
func (v *Verdict) handOn(s pool.Session, waited time.Duration) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.queues() {
			s.Turns.Offer(e.turn(s, waited))
		}
	}
}

// turn returns the request's turn in a queue, after a wait.
func (e *Entry) turn(s pool.Session, waited time.Duration) *turns.Turn {
	rule, d := e.Policy.Rule, &e.Decision
	back, adjust := e.giveBack(), s.Store.Adjust
	return &turns.Turn{
		Queue: turns.Queue{State: rule.ID(), Salt: rule.Salt(), Override: d.Override, Key: e.Key},
		Cost:  e.Cost,
		At:    d.Turn(),
		Wait:  d.Delay - waited,
		Return: func(at int64, done func(changed bool)) {
			last := back
			last.Turn, last.Done = at, done
			adjust(last)
		},
	}
}

// setTurn records the turn that the request has taken, for later adjustments of its charge.
func (e *Entry) setTurn(at int64) {
	e.Decision.Delay = time.Duration(at-e.Decision.At) * time.Microsecond
}
