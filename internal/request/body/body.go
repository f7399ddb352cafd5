// Package body looks at the beginning of a request's body, and leaves the body as it was for the handlers
// behind.
package body

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// ErrTooLarge is the error of a body that is larger than what may be looked at.
var ErrTooLarge = errors.New("the body is too large")

// ErrBusy is the error of a body for which there is no room beside those of other requests.
var ErrBusy = errors.New("other requests hold all the memory for bodies")

// firstRead is how much room a body gets at first. A client that only announces a body takes no more.
const firstRead = 4 << 10

// Peek returns the whole body of a request. Whatever it returns, the handlers behind read the same body.
// It reads at most a byte more than most, and gives up after a time, if Caddy's server can interrupt it.
// A body that is larger than most is ErrTooLarge, and one for which there is no room is ErrBusy; other errors
// are those of the client. The caller must not change the bytes, which are valid until the body is read.
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
		if err := b.look(r.Context(), most, r.ContentLength); err != nil {
			return nil, err
		}
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
	valid bool // what is seen is a valid JSON text
	room  room // of seen
}

// look reads up to a byte more than most. The room doubles while the body comes.
func (b *peeked) look(ctx context.Context, most int, length int64) error {
	if b.seen == nil {
		room := firstRead
		if length > 0 {
			room = int(min(length, firstRead))
		}
		b.seen = make([]byte, 0, min(room, most)+1)
	}
	for b.err == nil && len(b.seen) <= most {
		if len(b.seen) == cap(b.seen) {
			room := min(2*cap(b.seen), most+1)
			if !b.room.grow(ctx, room) {
				return ErrBusy
			}
			grown := make([]byte, len(b.seen), room)
			copy(grown, b.seen)
			b.seen = grown
		}
		n, err := b.rest.Read(b.seen[len(b.seen):cap(b.seen)])
		b.seen, b.err = b.seen[:len(b.seen)+n], err
	}
	return nil
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
