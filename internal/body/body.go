// Package body looks at the beginning of a request's body, and leaves the body as it was for the handlers
// behind.
package body

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// ErrTooLarge is the error of a body that is larger than what may be looked at.
var ErrTooLarge = errors.New("the body is too large")

// firstRead is how much room a body of unknown length gets at first.
const firstRead = 4 << 10

// Peek returns the whole body of a request. Whatever it returns, the handlers behind read the same body.
// It reads at most a byte more than most, and gives up after a time, if Caddy's server can interrupt it.
// A body that is larger than most is ErrTooLarge; other errors are those of the client. The caller must
// not change the bytes, which are valid until the body is read.
func Peek(r *http.Request, most int, within time.Duration) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > int64(most) {
		return nil, ErrTooLarge
	}
	b, ok := r.Body.(*peeked)
	if !ok {
		b = &peeked{rest: r.Body}
		r.Body = b
	}
	if b.begun {
		return nil, errors.New("a handler has already read the body")
	}
	if b.err == nil && len(b.seen) <= most {
		if reader, _ := caddyhttp.IdleTimeoutsFromContext(r.Context()); reader != nil && reader.SetReadDeadline(time.Now().Add(within)) == nil {
			defer func() { _ = reader.SetReadDeadline(time.Time{}) }()
		}
		b.look(most, r.ContentLength)
	}
	switch {
	case len(b.seen) > most:
		return nil, ErrTooLarge
	case b.err != io.EOF:
		return nil, b.err
	}
	return b.seen, nil
}

// peeked is a body whose beginning was read before.
type peeked struct {
	seen  []byte
	err   error // what came behind seen; nil if there may be more
	rest  io.ReadCloser
	begun bool // a handler has begun to read it
}

// look reads up to a byte more than most.
func (b *peeked) look(most int, length int64) {
	if b.seen == nil {
		b.seen = make([]byte, 0, 1+min(int64(most), max(length, firstRead)))
	}
	for b.err == nil && len(b.seen) <= most {
		if len(b.seen) == cap(b.seen) {
			grown := make([]byte, len(b.seen), min(2*cap(b.seen), most+1))
			copy(grown, b.seen)
			b.seen = grown
		}
		n, err := b.rest.Read(b.seen[len(b.seen):cap(b.seen)])
		b.seen, b.err = b.seen[:len(b.seen)+n], err
	}
}

// Read implements [io.Reader].
func (b *peeked) Read(p []byte) (int, error) {
	b.begun = true
	if len(b.seen) > 0 {
		n := copy(p, b.seen)
		if b.seen = b.seen[n:]; len(b.seen) == 0 {
			b.seen = nil // which may be much
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
