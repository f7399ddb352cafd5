package limiter

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
)

// queues reports whether an entry makes the request wait for its turn.
func (v *Verdict) queues(i int) bool { return i < v.Enforced && v.Decisions[i].Delay > 0 }

// delay returns how long an allowed request must wait for its turn.
func (v *Verdict) delay() (d time.Duration) {
	for i := range v.Enforced {
		d = max(d, v.Decisions[i].Delay)
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
	w, i := v.join(s)
	switch {
	case w == nil:
		if v.wait.pause(v.Request.Request, delay) {
			return true
		}
		v.handOn(s, v.wait.clock.Now()-began)
	case v.wait.sleep(v.Request.Request, w.Ready()):
		v.setTurn(i, w.At())
		return true
	case s.Turns.Leave(w): // the client left at the moment when the turn came
		v.setTurn(i, w.At())
		v.handOn(s, v.wait.clock.Now()-began)
	}
	s.Adjust(v.unserved()...)
	return false
}

// join makes the request wait with others that hand their turns on. A request that waits in
// several queues leaves when the last of its turns has come, so it waits alone: then w is nil.
func (v *Verdict) join(s pool.Session) (w *turns.Waiter, in int) {
	in = -1
	for i := range v.Enforced {
		if v.queues(i) {
			if in >= 0 {
				return nil, -1
			}
			in = i
		}
	}
	return s.Turns.Join(v.turn(s, in, 0)), in
}

// handOn gives up all turns of a request that has waited alone.
func (v *Verdict) handOn(s pool.Session, waited time.Duration) {
	for i := range v.Enforced {
		if v.queues(i) {
			s.Turns.Offer(v.turn(s, i, waited))
		}
	}
}

// turn returns the request's turn in a queue, after a wait.
func (v *Verdict) turn(s pool.Session, i int, waited time.Duration) *turns.Turn {
	c, d := v.Checks[i], &v.Decisions[i]
	back, adjust := v.giveBack(i), s.Store.Adjust
	return &turns.Turn{
		Queue: turns.Queue{State: c.Rule.ID(), Salt: c.Rule.Salt(), Override: d.Override, Key: c.Key},
		Cost:  c.Cost,
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
func (v *Verdict) setTurn(i int, at int64) {
	d := &v.Decisions[i]
	d.Delay = time.Duration(at-d.At) * time.Microsecond
}
