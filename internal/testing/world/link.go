package world

import (
	"context"
	"net"
	"time"
)

// dial makes a connection of an instance.
func (w *world) dial(ctx context.Context, instance int, address string) (net.Conn, error) {
	time.Sleep(between(w.net.draw("dial", instance, address), 20*time.Microsecond, 200*time.Microsecond))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	host, err := w.reach(address)
	if err != nil {
		return nil, err
	}
	c := &conn{w: w, instance: instance, host: host, session: host.session(), changed: make(chan struct{})}
	w.net.at(w.net.now(), 0, func() { c.host.conns = append(c.host.conns, c) })
	return c, nil
}
