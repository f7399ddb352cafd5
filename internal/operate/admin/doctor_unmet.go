package admin

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
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

// sinceLoaded returns how many requests the zone has met since the config was loaded.
func (z *runningZone) sinceLoaded() (n uint64) {
	for _, of := range z.Stats.Totals() {
		n += of
	}
	return n - z.before.requests
}

// unmet collects why a zone has met no request.
func (z *runningZone) unmet(facts *doctor.Zone, all []*runningZone) {
	for _, other := range all {
		facts.Elsewhere = max(facts.Elsewhere, other.sinceLoaded())
	}
	for i, h := range z.handlers {
		facts.Missed += z.uses[i].Missed()
		if h.Requests != nil {
			facts.Served = max(facts.Served, h.Requests.n.Load())
		}
	}
}
