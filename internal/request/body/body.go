// Package body looks at the beginning of a request's body, leaves the body as it was for the handlers behind, and finds out
// whether the client breaks it off.
package body

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
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
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	_, followed := r.Body.(*Body)
	b := Of(r)
	if b == nil {
		return nil, nil
	}
	if b.begun.Load() {
		return nil, &Refusal{http.StatusBadRequest, errors.New("a handler has already read the body")}
	}
	if b.err == nil && len(b.seen) <= maxBody {
		if reader, _ := caddyhttp.IdleTimeoutsFromContext(r.Context()); reader != nil && reader.SetReadDeadline(time.Now().Add(within)) == nil {
			defer func() { _ = reader.SetReadDeadline(time.Time{}) }()
		}
		if !b.look(r.Context(), r.ContentLength) {
			return nil, busy
		}
		if followed { // by a handler before, for which this one reads
			b.note(b.err)
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

// Body is a body whose beginning may have been read before handlers read it.
type Body struct {
	seen  []byte
	err   error // what came behind seen; nil if there may be more
	rest  io.ReadCloser
	valid bool // what is seen is a valid JSON text
	room  room // of seen

	begun, closed atomic.Bool // by a handler, of which a proxy does so on its own goroutine
	broken        atomic.Bool // by the client
}

// Of returns the body of a request, through which handlers read from now on; nil if there is none.
func Of(r *http.Request) *Body {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	b, ok := r.Body.(*Body)
	if !ok {
		b = &Body{rest: r.Body}
		r.Body = b
	}
	return b
}

// look reads up to a byte more than maxBody. The room doubles while the body comes. It reports whether there is room.
func (b *Body) look(ctx context.Context, length int64) bool {
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
func (b *Body) Read(p []byte) (n int, err error) {
	b.begun.Store(true)
	if len(b.seen) > 0 {
		n = copy(p, b.seen)
		if b.seen = b.seen[n:]; len(b.seen) == 0 {
			b.seen = nil // which may be much
			b.room.giveBack()
			if b.err == io.EOF {
				return n, io.EOF
			}
		}
		return n, nil
	}
	if err = b.err; err == nil {
		n, err = b.rest.Read(p)
	}
	b.note(err)
	return n, err
}

// note notes an error of the body. One after Close says nothing about the client. [http.ErrBodyReadAfterClose] does not
// either, because the server closes the body when a response begins early.
func (b *Body) note(err error) {
	if err != nil && err != io.EOF && !b.closed.Load() && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
	}
}

// Close implements [io.Closer].
func (b *Body) Close() error {
	b.closed.Store(true)
	return b.rest.Close()
}

// Returned gets the error of the next handlers, because only there it shows that the body was above a size that one of them
// allows. If nothing was read, nothing has reached an upstream.
func (b *Body) Returned(err error) {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge && b != nil && b.begun.Load() {
		b.broken.Store(true)
	}
}

// Broken reports whether the client has broken off its request. An upstream may have done its work by then, although its
// response is lost.
func (b *Body) Broken() bool { return b != nil && b.broken.Load() }

// MaxInMemory is how many bytes the bodies of all requests may have at once. The first 4 KiB of each do not count,
// so that requests with small bodies always have room.
const MaxInMemory = 256 << 20

// inMemory is how many bytes the bodies of all requests have.
var inMemory atomic.Int64

// room is what a body has of MaxInMemory.
type room struct{ size atomic.Int64 }

// grow makes the room this large until the body is read or its request is over. It reports whether there is
// so much.
func (r *room) grow(ctx context.Context, size int) bool {
	had := r.size.Load()
	more := int64(size) - had
	if inMemory.Add(more) > MaxInMemory {
		inMemory.Add(-more)
		return false
	}
	r.size.Add(more)
	if had == 0 {
		context.AfterFunc(ctx, r.giveBack)
	}
	if ctx.Err() != nil { // then it may have been given back before this
		r.giveBack()
	}
	return true
}

// giveBack gives back all of the room. It may be called several times and at once.
func (r *room) giveBack() { inMemory.Add(-r.size.Swap(0)) }
