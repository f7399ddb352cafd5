package caddyratelimit

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// requestBody notes that the client has broken its request off. An upstream may have done
// its work by then, although its answer gets lost.
type requestBody struct {
	io.ReadCloser
	begun, closed, failed atomic.Bool // a proxy's transport reads on a goroutine of its own
}

// watchBody puts one around the body of a request, if it has a body.
func watchBody(r *http.Request) *requestBody {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	b := &requestBody{ReadCloser: r.Body}
	r.Body = b
	return b
}

// Read implements [io.Reader]. An error after Close tells nothing of the client. Nor does
// [http.ErrBodyReadAfterClose]: the server closes the body when an answer begins early.
func (b *requestBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !b.closed.Load() && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.failed.Store(true)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *requestBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// returned looks at the error of the handlers behind. A limit on the body's size that one of
// them has set shows only there. Where nothing was read, nothing has reached an upstream.
func (b *requestBody) returned(err error) {
	if b == nil || err == nil || !b.begun.Load() {
		return
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		b.failed.Store(true)
	}
}

// broken reports whether the client has broken its request off.
func (b *requestBody) broken() bool { return b != nil && b.failed.Load() }

// beneath puts a writer under all that Caddy's server answers a request through. There it
// sees what error routes send: they write to the server's writer and not to that of the
// handler whose error they answer. It reports whether the server has a place for it, which
// it has unless its write_idle_timeout is off.
func beneath(r *http.Request, wrap func(http.ResponseWriter) http.ResponseWriter) bool {
	_, idle := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if idle == nil {
		return false
	}
	idle.ResponseWriterWrapper = &caddyhttp.ResponseWriterWrapper{ResponseWriter: wrap(idle.ResponseWriter)}
	return true
}
