package world

import (
	"context"
	"net"
	"syscall"
	"time"
)

// dial makes a connection of an instance.
func (w *world) dial(ctx context.Context, instance int) (net.Conn, error) {
	time.Sleep(between(w.net.draw("dial", instance), 20*time.Microsecond, 200*time.Microsecond))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.mu.Lock()
	host := w.host
	down := host.down
	w.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	c := &conn{w: w, instance: instance, host: host, changed: make(chan struct{})}
	w.net.at(w.net.now(), 0, func() { c.host.conns = append(c.host.conns, c) })
	return c, nil
}

// way is how long a message takes.
func (w *world) way(c *conn, b []byte, direction string) time.Duration {
	d := between(w.net.draw(direction, c.instance, c.role, bag(b)), 20*time.Microsecond, 200*time.Microsecond)
	if w.meets(Delay, c.instance) {
		d += between(w.net.draw("late", direction, c.instance, c.role, bag(b)), 0, 2*timeout)
	}
	return d
}

// sends has bytes go from an instance to its host. The connection is locked.
func (w *world) sends(c *conn, b []byte) {
	if c.role == 0 {
		c.role = role() // which go-redis dials for, in another goroutine
	}
	c.lastOut = max(c.lastOut+1, w.net.now()+w.way(c, b, "to"))
	lost := w.meets(LoseRequests, c.instance) && w.net.draw("lost", c.instance, c.role, bag(b))%2 == 0
	w.net.at(c.lastOut, bag(b)+c.role+uint64(c.instance), func() {
		if lost {
			c.reset(errReset)
		} else {
			c.host.receive(c, b)
		}
	})
}

// replies has a reply go back.
func (w *world) replies(c *conn, b []byte) {
	c.lastIn = max(c.lastIn+1, w.net.now()+service+w.way(c, b, "from"))
	lost := w.meets(LoseReplies, c.instance) && w.net.draw("lost reply", c.instance, c.role, bag(b))%2 == 0
	w.net.at(c.lastIn, bag(b)+c.role+uint64(c.instance), func() {
		if lost {
			c.reset(errReset)
		} else {
			c.arrive(b)
		}
	})
}
