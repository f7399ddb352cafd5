package body

import (
	"io"
	"maps"
	"net/http"
)

// RemoveTrailers removes trailers from a request: those that are announced, and those that come at the end of its body.
func RemoveTrailers(r *http.Request, remove func(name string) bool) {
	if r.Trailer == nil || r.Body == nil {
		return // a proxy forwards trailers only if one is announced
	}
	t := trailers{r.Trailer, remove}
	if t.tidy(); r.Body == http.NoBody {
		return
	}
	to := &r.Body
	if b, ok := r.Body.(*peeked); ok {
		to = &b.rest
	}
	*to = &trailed{*to, t}
}

// trailers are those of a request. The server adds to them when it has read the end of the body.
type trailers struct {
	all    http.Header
	remove func(name string) bool
}

func (t *trailers) tidy() {
	maps.DeleteFunc(t.all, func(name string, _ []string) bool { return t.remove(name) })
}

// trailed is a body behind which trailers are removed.
type trailed struct {
	io.ReadCloser
	trailers
}

// Read implements [io.Reader].
func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.tidy()
	}
	return n, err
}
