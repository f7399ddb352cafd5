package body

import (
	"io"
	"net/http"
)

// Seen returns the whole body of a request if Peek has read it, it has at most some bytes, and no handler has begun to
// read it. Otherwise it returns nil. It reads nothing. The caller must not change the bytes.
func Seen(r *http.Request, most int) []byte {
	b, ok := r.Body.(*peeked)
	if !ok || b.begun || b.err != io.EOF || len(b.seen) > most {
		return nil
	}
	return b.seen
}
