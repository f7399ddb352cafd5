package node

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// go-redis allocates what a reply announces, before any of it has come. So a connection looks
// at the lengths that a reply announces, and breaks off if they are more than any reply to this
// package has. The reply to a decision is some kilobytes, and the slots of the most scattered
// Cluster are some hundred thousand elements.
const (
	maxReply    = 4 << 20  // bytes of the reply to a command or a pipeline
	maxLine     = 64 << 10 // bytes of a line: a status, an error, or a length
	maxElements = 1 << 19
	maxDepth    = 8 // of arrays within arrays: go-redis reads each with a function that calls itself
)

var errReply = errors.New("redis sends more than any valid reply")

// bounded is a connection that reads no more than a reply may have.
type bounded struct {
	net.Conn
	reply  replyBound
	broken error // go-redis may read once more before it gives the connection up

	socket syscall.RawConn // nil if the connection is encrypted
	used   time.Time       // when something last came
	asked  bool            // something was written since
	ready  bool            // it was set up, and commands of callers were written

	reading, writing postponed // if the connection is not encrypted: TLS fails for good after a late write
	writeFor         time.Duration
	writeUntil       time.Time
}

// bound makes a connection bounded. If go-redis could ask the socket whether the connection is
// still up, it still can: one that was made too late for its call waits for another one in the pool of go-redis.
func bound(conn net.Conn) net.Conn {
	b := &bounded{Conn: conn}
	if socket, ok := conn.(syscall.Conn); ok {
		b.socket, _ = socket.SyscallConn()
		return struct {
			*bounded
			syscall.Conn
		}{b, socket}
	}
	return b
}

// maxIdle is how long a connection may have been idle for a call to be sent without a look whether
// Redis has closed it. It is about the shortest time in which somebody can have Redis do that.
const maxIdle = 20 * time.Microsecond

// errIdle is the error of a call that was not sent, because Redis has closed the connection meanwhile.
var errIdle error = unsentError{fmt.Errorf("redis has closed the connection: %w", syscall.ECONNRESET)}

func (b *bounded) Write(p []byte) (int, error) {
	// A long command is written in parts, and also several commands: Redis may have answered the first of them.
	if b.socket != nil && !b.asked && !b.used.IsZero() && time.Since(b.used) > maxIdle && hungUp(b.socket) {
		return 0, errIdle
	}
	first := !b.asked
	b.asked, b.ready = true, b.ready || !setsUp(p)
	b.reply.size, b.reply.elements = 0, 0
	if !b.writeUntil.IsZero() && time.Now().After(b.writeUntil) { // this goroutine had to wait, and not the write
		if err := b.SetWriteDeadline(time.Now().Add(b.writeFor)); err != nil {
			return 0, b.inSetup(err)
		}
	}
	n, err := b.Conn.Write(p)
	looks := 0
	if b.socket != nil && b.writeFor > 0 { // the deadline was not over when it was set
		looks = maxLooks
	}
	for err != nil && b.writing.goOn(err, &looks, b.Conn.SetWriteDeadline) {
		var more int
		more, err = b.Conn.Write(p[n:])
		n += more
	}
	if first && n == 0 { // nothing was written
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = unsentError{err}
		case !b.used.IsZero() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
			err = errIdle // as hungUp would have reported for a socket
		}
	}
	return n, b.inSetup(err)
}

// setsUp reports whether something that is written sets up the connection, and is no command of a caller.
func setsUp(p []byte) bool {
	_, name, _ := bytes.Cut(p, []byte("\r\n$"))
	_, name, _ = bytes.Cut(name, []byte("\r\n"))
	for _, command := range []string{"hello", "auth", "select"} {
		if len(name) >= len(command) && strings.EqualFold(string(name[:len(command)]), command) {
			return true
		}
	}
	return false
}

// inSetup returns the error of a read or write. If the connection was not set up yet, no command of a caller was
// sent. It is wrapped twice, because go-redis unwraps the error of setting up a connection once.
func (b *bounded) inSetup(err error) error {
	if err == nil || b.ready || err == errIdle { // it is the same
		return err
	}
	return fmt.Errorf("setting up a connection to redis: %w", unsentError{err})
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.broken != nil {
		return 0, b.broken
	}
	n, err := b.Conn.Read(p)
	for looks := maxLooks; err != nil && n == 0 && b.reading.goOn(err, &looks, b.Conn.SetReadDeadline); {
		n, err = b.Conn.Read(p)
	}
	b.used, b.asked = time.Now(), false
	if b.broken = b.reply.read(p[:n]); b.broken != nil {
		return 0, b.broken
	}
	return n, b.inSetup(err)
}

// SetDeadline implements [net.Conn].
func (b *bounded) SetDeadline(t time.Time) error {
	b.reading, b.writing, b.writeUntil = postponed{}, postponed{}, time.Time{}
	return b.Conn.SetDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (b *bounded) SetReadDeadline(t time.Time) error {
	if b.socket != nil && !b.reading.want(t) {
		return nil
	}
	return b.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements [net.Conn].
func (b *bounded) SetWriteDeadline(t time.Time) error {
	if b.writeUntil = t; !t.IsZero() {
		b.writeFor = max(0, time.Until(t))
	}
	if b.socket != nil && !b.writing.want(t) {
		return nil
	}
	return b.Conn.SetWriteDeadline(t)
}

// postponed is a deadline of a connection. Each call has a later one than the call before, and setting one
// costs more than a system call. So it is set only if it would be much too early. A read or write that
// it ends too early goes on with the deadline that is wanted.
type postponed struct {
	set, wanted time.Time
	slack       time.Duration // how much earlier than wanted it may be
}

// want says which deadline is wanted, and reports whether it must be set.
func (p *postponed) want(deadline time.Time) bool {
	p.wanted = deadline
	if early := deadline.Sub(p.set); early >= 0 && early < p.slack {
		return false
	}
	p.set, p.slack = deadline, 0
	if !deadline.IsZero() {
		p.slack = time.Until(deadline) / 8
	}
	return true
}

const (
	// lookTime is how long a read that has come to its end looks what has come by then, and a write whether there is room, and
	// maxLooks how often they do: this process may have been kept from running until the deadline, while the reply was there.
	lookTime = time.Millisecond
	maxLooks = 3
)

// goOn reports whether a read or write goes on that has failed, with another deadline: with the one that is wanted if that
// is later than the one that was set, or else with one for a look, of which so many are left.
func (p *postponed) goOn(err error, looks *int, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !p.set.Equal(p.wanted) {
		p.set, p.slack = p.wanted, 0
		return set(p.wanted) == nil
	}
	if *looks--; *looks < 0 {
		return false
	}
	*p = postponed{}
	return set(time.Now().Add(lookTime)) == nil
}

// replyBound reads along, as far as it needs to find the lengths.
type replyBound struct {
	size, elements int64

	payload int64    // what is still to come of a string
	line    int      // how much of a line has come
	head    [32]byte // as much of it as a length has at most

	open  [maxDepth]int64 // of the arrays that were announced, from outside: how many elements are still to come
	depth int
}

func (r *replyBound) read(p []byte) error {
	if r.size += int64(len(p)); r.size > maxReply {
		return fmt.Errorf("%w: more than %d bytes", errReply, maxReply)
	}
	for len(p) > 0 {
		if n := min(r.payload, int64(len(p))); n > 0 {
			r.payload -= n
			p = p[n:]
			continue
		}
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		copy(r.head[min(r.line, len(r.head)):], part)
		if r.line += len(part); r.line > maxLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errReply, maxLine)
		}
		if !ended {
			return nil
		}
		if err := r.announced(); err != nil {
			return err
		}
		p, r.line = rest, 0
	}
	return nil
}

// announced checks the length that a line announces, if it announces one. It reads a number as go-redis does.
func (r *replyBound) announced() error {
	line := r.head[:min(r.line, len(r.head))]
	for r.depth > 0 && r.open[r.depth-1] == 0 {
		r.depth--
	}
	if r.depth > 0 {
		r.open[r.depth-1]--
	}
	if len(line) == 0 || !strings.Contains("$!=*~>%|", string(line[:1])) {
		return nil
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSuffix(line[1:], []byte("\r"))), 10, 64) // 0 if it is no number
	isText := strings.Contains("$!=", string(line[:1]))
	switch {
	case r.line > len(line):
		return fmt.Errorf("%w: a length of more than %d bytes", errReply, len(line))
	case line[0] == '|':
		return fmt.Errorf("%w: an attribute", errReply)
	case n < 0, n == 0 && !isText: // nothing is to come
	case isText && n > maxReply:
		return fmt.Errorf("%w: a string of more than %d bytes", errReply, maxReply)
	case isText:
		r.payload = n + int64(len("\r\n"))
	case n > maxElements-r.elements:
		return fmt.Errorf("%w: more than %d elements", errReply, maxElements)
	case r.depth == maxDepth:
		return fmt.Errorf("%w: more than %d arrays in each other", errReply, maxDepth)
	default:
		r.elements += n
		r.open[r.depth] = n
		if line[0] == '%' { // pairs
			r.open[r.depth] = 2 * n
		}
		r.depth++
	}
	return nil
}
