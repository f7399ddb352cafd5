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
