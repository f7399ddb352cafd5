package stats

import (
	"net"
	"net/http"
	"sync/atomic"
)

// Requests counts the requests of a server, up to a bound. Of HTTP/2 it counts a few of them, and none of
// HTTP/3.
type Requests struct{ n atomic.Uint64 }

const maxRequests = 1000

// Note is called when a connection changes its state.
func (r *Requests) Note(_ net.Conn, state http.ConnState) {
	if state == http.StateActive && r.n.Load() < maxRequests {
		r.n.Add(1)
	}
}

// Count returns how many there were. The receiver may be nil.
func (r *Requests) Count() uint64 {
	if r == nil {
		return 0
	}
	return r.n.Load()
}
