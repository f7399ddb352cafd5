package world

import (
	"context"
	"net"
	"syscall"
	"time"
)

// dial makes a connection of an instance.
func (w *world) dial(ctx context.Context, in *instance, address string) (net.Conn, error) {
	time.Sleep(between(w.net.draw("dial", in.number, address), 20*time.Microsecond, 200*time.Microsecond))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	host, err := w.reach(address)
	if err != nil {
		return nil, err
	}
	if in.dead() {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	c := &conn{w: w, in: in, instance: in.number, host: host, session: host.session(), changed: make(chan struct{})}
	w.net.at(w.net.now(), 0, func() { c.host.conns = append(c.host.conns, c) })
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return c, nil
}
