// Package body looks at the beginning of a request's body, and leaves the body as it was for the handlers
// behind.
package body

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// maxBody is how many bytes a body may have, and within how long it may take.
	maxBody = 1 << 20
	within  = 10 * time.Second

	// firstRead is how much room a body gets at first. A client that only announces a body takes no more.
	firstRead = 4 << 10
)

// Refusal is why a request is refused because of its body, and the status for that.
type Refusal struct {
	Status int
	Err    error
}

var (
	tooLarge = &Refusal{http.StatusRequestEntityTooLarge, errors.New("the body is too large")}
	busy     = &Refusal{http.StatusServiceUnavailable, errors.New("other requests hold all the memory for bodies")}
)

// peek returns the whole body of a request. Whatever it returns, the handlers behind read the same body.
// It reads at most a byte more than maxBody, and gives up after a time, if Caddy's server can interrupt it.
// The caller must not change the bytes, which are valid until the body is read.
func peek(r *http.Request) ([]byte, *Refusal) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	b, ok := r.Body.(*peeked)
	if !ok {
		b = &peeked{rest: r.Body}
		r.Body = b
	}
	if b.begun {
		return nil, &Refusal{http.StatusBadRequest, errors.New("a handler has already read the body")}
	}
	if b.err == nil && len(b.seen) <= maxBody {
		if reader, _ := caddyhttp.IdleTimeoutsFromContext(r.Context()); reader != nil && reader.SetReadDeadline(time.Now().Add(within)) == nil {
			defer func() { _ = reader.SetReadDeadline(time.Time{}) }()
		}
		if !b.look(r.Context(), r.ContentLength) {
			return nil, busy
		}
	}
	_, limited := errors.AsType[*http.MaxBytesError](b.err)
	switch {
	case len(b.seen) > maxBody || limited:
		return nil, tooLarge
	case b.err == io.EOF:
		return b.seen, nil
	case errors.Is(b.err, os.ErrDeadlineExceeded):
		return nil, &Refusal{http.StatusRequestTimeout, b.err}
	}
	return nil, &Refusal{http.StatusBadRequest, b.err}
}

// peeked is a body whose beginning was read before.
type peeked struct {
	seen  []byte
	err   error // what came behind seen; nil if there may be more
	rest  io.ReadCloser
	begun bool // a handler has begun to read it
	valid bool // what is seen is a valid JSON text
	room  room // of seen
}

// look reads up to a byte more than maxBody. The room doubles while the body comes. It reports whether there is room.
func (b *peeked) look(ctx context.Context, length int64) bool {
	if b.seen == nil {
		room := firstRead
		if length > 0 {
			room = int(min(length, firstRead))
		}
		b.seen = make([]byte, 0, room+1)
	}
	for b.err == nil && len(b.seen) <= maxBody {
		if len(b.seen) == cap(b.seen) {
			room := min(2*cap(b.seen), maxBody+1)
			if !b.room.grow(ctx, room) {
				return false
			}
			b.seen = append(make([]byte, 0, room), b.seen...)
		}
		n, err := b.rest.Read(b.seen[len(b.seen):cap(b.seen)])
		b.seen, b.err = b.seen[:len(b.seen)+n], err
	}
	return true
}

// Read implements [io.Reader].
func (b *peeked) Read(p []byte) (int, error) {
	b.begun = true
	if len(b.seen) > 0 {
		n := copy(p, b.seen)
		if b.seen = b.seen[n:]; len(b.seen) == 0 {
			b.seen = nil // which may be much
			b.room.giveBack()
			if b.err == io.EOF {
				return n, io.EOF
			}
		}
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// Close implements [io.Closer].
func (b *peeked) Close() error { return b.rest.Close() }
