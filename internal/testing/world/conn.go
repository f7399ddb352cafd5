package world

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// conn is an instance's end of a connection to a host.
type conn struct {
	w        *world
	instance int
	in       *instance
	role     uint64 // of who has used it first
	host     *host
	to       uint64 // a number for the address

	mu       sync.Mutex
	inbox    []byte
	broken   error // what a read meets when the inbox is empty
	closed   bool
	reading  time.Time // deadlines
	writing  time.Time
	changed  chan struct{} // is closed when a reader should look again
	lastOut  time.Duration // when the last bytes arrive at the host
	lastIn   time.Duration // and when those do that it sent
	said     uint64        // a number for these
	vanished bool          // nothing arrives any more, in either direction

	message message       // that has come last; only the network's goroutine uses it
	sent    time.Duration // when that was sent
	asked   []byte        // what the host has received and not carried out; only the network's goroutine uses it
	serving bool
	session *simredis.Session
}

var _ net.Conn = (*conn)(nil)

func (c *conn) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Read implements [net.Conn]. As in a real one, what has come is not read after the deadline.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case len(c.inbox) > 0:
		n := copy(p, c.inbox)
		c.inbox = c.inbox[n:]
		return n, nil
	}
	return 0, c.broken
}

// sender is a number for who sends over the connection, and for the address.
func (c *conn) sender() uint64 { return c.role + c.to + uint64(c.instance) }

// identity tells the connection apart from others by what it has sent last.
func (c *conn) identity() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.role + c.to + c.said + uint64(c.lastOut)
}

// ready waits until there is something to read, or the time for that is over.
func (c *conn) ready() error {
	for {
		c.mu.Lock()
		wait, changed := time.Duration(-1), c.changed
		if !c.reading.IsZero() {
			wait = time.Until(c.reading)
		}
		switch {
		case c.closed:
			c.mu.Unlock()
			return net.ErrClosed
		case wait <= 0 && !c.reading.IsZero():
			c.mu.Unlock()
			return os.ErrDeadlineExceeded
		case len(c.inbox) > 0 || c.broken != nil:
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		if wait < 0 {
			<-changed
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			c.w.net.wait(c.w.net.now(), c.identity()) // others may be late at the same instant
		}
	}
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
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
	if !c.closed {
		c.closed = true
		c.notify()
	}
	return nil
}

// reset breaks the connection for its instance: nothing comes any more but an error.
func (c *conn) reset(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken, c.vanished = err, true
		c.notify()
	}
}

var errRefused error = syscall.ECONNREFUSED

var errReset error = &net.OpError{Op: "read", Err: syscall.ECONNRESET}

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
