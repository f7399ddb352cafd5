package world

import (
	"cmp"
	"fmt"
	"time"
)

// message is who sends what to Redis, and when. What it meets follows from that, and what its reply meets follows from
// it too. So nothing of it changes if something is taken from the plan, unless it is sent at another time.
type message uint64

// fate draws a number of what a message meets.
func (w *world) fate(m message, about string) uint64 {
	return draw(w.plan.Seed, 0, []any{uint64(m), about})
}

// way is how long a message takes, or its reply.
func (w *world) way(c *conn, m message, direction string) time.Duration {
	d := 100 * time.Microsecond
	if !w.plan.Even {
		d = between(w.fate(m, direction), 20*time.Microsecond, 200*time.Microsecond)
	}
	if late := w.meets(Delay, c.instance); late != nil && late.Surely {
		d += 3 * timeout / 2
	} else if late != nil {
		d += between(w.fate(m, "late "+direction), 0, cmp.Or(late.After, 2*timeout))
	}
	return d
}

// loses reports whether a message gets lost, or its reply.
func (w *world) loses(c *conn, m message, kind Kind) bool {
	e := w.meets(kind, c.instance)
	return e != nil && (e.Surely || w.fate(m, string(kind))%2 == 0)
}

// sends has bytes go from an instance to its host. The connection is locked.
func (w *world) sends(c *conn, b []byte) {
	if c.role == 0 {
		c.role = role() // which go-redis dials for, in another goroutine
	}
	what := bag(b)
	m := message(w.net.draw("message", c.instance, c.role, what, c.to))
	c.said, c.lastOut = what, even(max(c.lastOut+1, w.net.now()+w.way(c, m, "to")))
	lost, sent := w.loses(c, m, LoseRequests), w.net.now()
	w.net.at(c.lastOut, what+c.sender(), func() {
		if lost {
			w.history.note(w.net.now(), fmt.Sprintf("lost: what instance %d sends", c.instance))
			c.reset(errReset)
		} else {
			c.message, c.sent = m, sent
			c.host.receive(c, b)
		}
	})
}

// replies has a reply go back to what has come last. It returns when that arrives; 0: it gets lost.
func (w *world) replies(c *conn, b []byte) (arrives time.Duration) {
	c.lastIn = even(max(c.lastIn+1, w.net.now()+service+w.way(c, c.message, "from")))
	lost := w.loses(c, c.message, LoseReplies)
	w.net.at(c.lastIn, bag(b)+c.sender(), func() {
		if lost {
			w.history.note(w.net.now(), fmt.Sprintf("lost: the reply to instance %d", c.instance))
			c.reset(errReset)
		} else {
			c.arrive(b)
		}
	})
	if lost {
		return 0
	}
	return c.lastIn
}
