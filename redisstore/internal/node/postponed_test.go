package node

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts how often deadlines are set.
type counted struct {
	net.Conn
	sets int
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.sets++
	return c.Conn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.sets++
	return c.Conn.SetWriteDeadline(t)
}

// TestPostponedDeadlines: writes and reads end exactly when their deadlines are over, although these are rarely set, and when they
// have also looked for room or what has come.
func TestPostponedDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		counts := &counted{Conn: ours}
		c := &bounded{Conn: counts, socket: struct{ syscall.RawConn }{}}
		const timeout = time.Second
		set := func() time.Time {
			deadline := time.Now().Add(timeout)
			if err := errors.Join(c.SetWriteDeadline(deadline), c.SetReadDeadline(deadline)); err != nil {
				t.Fatal(err)
			}
			return deadline
		}
		go func() { // answers, until the test has seen enough answers
			b := make([]byte, 10)
			for range 1000 {
				_, _ = theirs.Read(b)
				time.Sleep(time.Millisecond)
				_, _ = theirs.Write([]byte("+OK\r\n"))
			}
		}()
		b := make([]byte, 10)
		for range 1000 {
			set()
			if _, err := c.Write([]byte("ping")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		if counts.sets > 2*1000/100 {
			t.Errorf("deadlines were set %d times in 1000 calls", counts.sets)
		}
		for what, wait := range map[string]func([]byte) (int, error){"read": c.Read, "write": c.Write} {
			if err := c.SetDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			set()
			time.Sleep(timeout / 10) // so little that the next deadline is a postponed one
			c.used = time.Time{}     // nobody looks whether the connection was closed
			deadline := set().Add(maxLooks * lookTime)
			if _, err := wait(b); !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Equal(deadline) {
				t.Errorf("a %s ended with %v, %v after its deadline", what, err, time.Since(deadline))
			}
		}
		soon := time.Now().Add(timeout / 100)
		if err := c.SetReadDeadline(soon); err != nil {
			t.Fatal(err)
		}
		soon = soon.Add(maxLooks * lookTime)
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Equal(soon) {
			t.Errorf("a read with an earlier deadline ended with %v, %v after it", err, time.Since(soon))
		}
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		sets := counts.sets
		if set(); counts.sets != sets+2 {
			t.Error("a deadline after none was not set")
		}
	})
}
