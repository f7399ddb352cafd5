package zone

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Misses knows how many of the requests that have come to a zone have not met it, and a few of those that
// a handler before had changed. Once it knows enough it only reads a number. The zero Misses is ready to
// use, from several goroutines at once.
type Misses struct {
	n     atomic.Uint32
	moved [8]atomic.Pointer[Moved]
}

// Moved is a request whose path a handler before had changed.
type Moved struct {
	Method, Host string
	Came, Here   string // its URI, and the path that the zone has seen
}

// maxMisses is how many requests are looked at.
const maxMisses = 1000

// Note notes a request that has not met the zone.
func (m *Misses) Note(r *http.Request) {
	if m.n.Load() >= maxMisses {
		return
	}
	n := m.n.Add(1)
	came, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	const longest = 200 // of a text that is kept
	if ok && came.URL.Path != r.URL.Path && max(len(came.RequestURI), len(r.Host), len(r.URL.Path)) <= longest {
		m.moved[n%uint32(len(m.moved))].Store(&Moved{strings.Clone(came.Method), strings.Clone(r.Host), strings.Clone(came.RequestURI), strings.Clone(r.URL.Path)})
	}
}

// Read returns how many requests have not met the zone, at most a bound, and some whose path had changed.
func (m *Misses) Read() (n uint64, moved []*Moved) {
	for i := range m.moved {
		if one := m.moved[i].Load(); one != nil {
			moved = append(moved, one)
		}
	}
	return uint64(m.n.Load()), moved
}
