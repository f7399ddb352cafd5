package world

import (
	"context"
	"net"
	"syscall"
	"time"
)

// dial makes a connection of an instance. Nobody knows here who it is for, so those that are made at one instant are ready
// at one instant.
func (w *world) dial(ctx context.Context, in *instance, address string) (net.Conn, error) {
	fate := w.net.draw("dial", in.number, address)
	w.net.wait(w.net.now()+between(fate, 20*time.Microsecond, 200*time.Microsecond), fate)
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
	c := &conn{w: w, in: in, instance: in.number, host: host, session: host.session(), to: uint64(dice(fnvOffset).text(address)), changed: make(chan struct{})}
	w.net.at(w.net.now(), 0, func() { c.host.conns = append(c.host.conns, c) })
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return c, nil
}
