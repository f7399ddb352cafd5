package caddyratelimit

import (
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
)

// queues reports whether a zone makes the request wait for its turn.
func (a *attempt) queues(i int) bool { return i < a.firm && a.decisions[i].Delay > 0 }

// delay is how long an allowed request must wait for its turn.
func (a *attempt) delay() (d time.Duration) {
	for i := range a.firm {
		d = max(d, a.decisions[i].Delay)
	}
	return d
}

// queue waits for the request's turn, and reports whether the client stayed. If the client
// leaves, the turn is handed on.
func (a *attempt) queue(u pool.Session, r *http.Request, p *patience, d time.Duration) bool {
	began := time.Now()
	w, i := a.join(u)
	switch {
	case w == nil:
		if p.pause(r, d) {
			return true
		}
		a.handOn(u, began)
	case p.sleep(r, w.Ready()):
		a.takes(i, w.At())
		return true
	case u.Turns.Leave(w): // in the moment in which its turn came
		a.takes(i, w.At())
		a.handOn(u, began)
	}
	u.Adjust(a.unserved()...)
	return false
}

// join has the request wait with others, who hand their turns on. A request that waits in
// several queues leaves when the last of its turns has come, so it waits by itself.
func (a *attempt) join(u pool.Session) (w *turns.Waiter, in int) {
	in = -1
	for i := range a.firm {
		if a.queues(i) {
			if in >= 0 {
				return nil, -1
			}
			in = i
		}
	}
	return u.Turns.Join(a.turn(u, in, 0)), in
}

// handOn gives up all turns of a request for which it has waited by itself.
func (a *attempt) handOn(u pool.Session, began time.Time) {
	for i := range a.firm {
		if a.queues(i) {
			u.Turns.Offer(a.turn(u, i, time.Since(began)))
		}
	}
}

// turn is the request's turn in a queue, for which it has waited for some time.
func (a *attempt) turn(u pool.Session, i int, waited time.Duration) *turns.Turn {
	c, d := a.checks[i], &a.decisions[i]
	back, settle := a.correction(i), u.Store.Adjust
	return &turns.Turn{
		Queue: turns.Queue{State: c.Rule.ID(), Salt: c.Rule.Salt(), Override: d.Override, Key: c.Key},
		Cost:  c.Cost,
		At:    d.Turn(),
		Wait:  d.Delay - waited,
		Return: func(at int64, told func(taken bool)) {
			last := back
			last.Turn, last.Done = at, told
			settle(last)
		},
	}
}

// takes notes which turn the request has taken, for what corrects its charge later.
func (a *attempt) takes(i int, at int64) {
	d := &a.decisions[i]
	d.Delay = time.Duration(at-d.At) * time.Microsecond
}
