package late

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// requestBody finds out whether the client has broken off its request. An upstream may have done
// its work by then, although its response is lost.
type requestBody struct {
	io.ReadCloser
	begun, closed, failed atomic.Bool // because a proxy's transport reads on its own goroutine
}

// watchBody wraps the body of a request. It returns nil if there is no body.
func watchBody(r *http.Request) *requestBody {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	b := &requestBody{ReadCloser: r.Body}
	r.Body = b
	return b
}

// Read implements [io.Reader]. An error after Close says nothing about the client.
// [http.ErrBodyReadAfterClose] does not either, because the server closes the body when a response begins early.
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

// returned checks the error of the next handlers, because only there it shows that the body was
// above a size that one of them allows. If nothing was read, nothing has reached an upstream.
func (b *requestBody) returned(err error) {
	if b == nil || err == nil || !b.begun.Load() {
		return
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		b.failed.Store(true)
	}
}

// broken reports whether the client has broken off its request.
func (b *requestBody) broken() bool { return b != nil && b.failed.Load() }
