package world

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// conn is an instance's end of a connection to a host.
type conn struct {
	w    *world
	in   *instance
	role uint64 // of who has used it first
	host *host
	to   uint64 // a number for the address

	mu       sync.Mutex
	inbox    []byte
	broken   error     // what a read meets when the inbox is empty
	reading  time.Time // deadlines
	writing  time.Time
	changed  chan struct{} // is closed when a reader should look again
	lastOut  time.Duration // when the last bytes arrive at the host
	lastIn   time.Duration // and when those do that it sent
	said     uint64        // a number for these
	vanished bool          // nothing arrives any more, in either direction

	message message // that has come last; only the network's goroutine uses it
	asked   []byte  // what the host has received and not carried out; only the network's goroutine uses it
	serving bool
	session interface{ Do(args ...string) []byte } // with a server or a Sentinel
}

var _ net.Conn = (*conn)(nil)

func (c *conn) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Read implements [net.Conn]. As in a real one, what has come is not read after the deadline.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, changed, deadline, err := c.read(p)
		if n > 0 || err != nil {
			return n, err
		}
		if deadline.IsZero() {
			<-changed
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			c.w.net.wait(c.w.net.now(), c.identity()) // others may be late at the same instant
		}
	}
}

// read reads what is there, or returns what to wait for.
func (c *conn) read(p []byte) (n int, changed chan struct{}, deadline time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken == net.ErrClosed:
		err = c.broken
	case !c.reading.IsZero() && !time.Now().Before(c.reading):
		err = os.ErrDeadlineExceeded
	case len(c.inbox) > 0:
		n = copy(p, c.inbox)
		c.inbox = c.inbox[n:]
	default:
		err = c.broken
	}
	return n, c.changed, c.reading, err
}

// sender is a number for who sends over the connection, and for the address.
func (c *conn) sender() uint64 { return c.role + c.to + uint64(c.in.number) }

// identity tells the connection apart from others by what it has sent last.
func (c *conn) identity() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.role + c.to + c.said + uint64(c.lastOut)
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken == net.ErrClosed:
		return 0, c.broken
	case !c.writing.IsZero() && !time.Now().Before(c.writing):
		return 0, os.ErrDeadlineExceeded
	case c.broken != nil:
		return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
	}
	c.w.sends(c, append([]byte(nil), p...))
	return len(p), nil
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = net.ErrClosed
	c.notify()
	return nil
}

// reset breaks the connection for its instance: nothing comes any more but an error.
func (c *conn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished = true
	if c.broken == nil {
		c.broken = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
		c.notify()
	}
}

// breakAll breaks some connections, as a machine does that has no memory of them.
func (w *world) breakAll(which func(c *conn) bool) {
	w.mu.Lock()
	conns := w.conns
	w.mu.Unlock()
	for _, c := range conns {
		if which(c) {
			c.reset()
		}
	}
}

// arrive brings bytes to the instance.
func (c *conn) arrive(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.inbox = append(c.inbox, b...)
		c.notify()
	}
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return new(net.TCPAddr) }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return new(net.TCPAddr) }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = t
	c.notify()
	return nil
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = t
	return nil
}

// dial makes a connection of an instance. Nobody knows here who it is for, so those that are made at one instant are ready
// at one instant.
func (w *world) dial(ctx context.Context, in *instance, address string) (net.Conn, error) {
	fate := w.net.draw("dial "+address, uint64(in.number))
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
	c := &conn{w: w, in: in, host: host, session: &simredis.Session{Server: host.redis}, to: uint64(dice(fnvOffset).text(address)), changed: make(chan struct{})}
	if host.sentinel != nil {
		c.session = host.sentinel
	}
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return c, nil
}
