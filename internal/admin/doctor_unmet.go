package admin

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
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
		missed, moved := z.uses[i].Misses.Read()
		facts.Missed += missed
		if h.Requests != nil {
			facts.Served = max(facts.Served, h.Requests.n.Load())
		}
		server := serverOf(&h)
		if server == nil {
			continue
		}
		for _, one := range moved {
			if wouldMeet(z.uses[i], server, one) {
				facts.Moved = &doctor.Moved{Came: one.Came, Here: one.Here}
			}
		}
		if i == 0 || facts.Behind != "" { // behind such a handler wherever it is used
			facts.Behind = walk.EndsBefore(server.Routes, h.Module)
		}
	}
}

// serverOf returns the server of a handler that runs; nil if it is not known.
func serverOf(h *Handler) *caddyhttp.Server {
	module, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil || h.Clients == nil {
		return nil
	}
	return module.(*caddyhttp.App).Servers[h.Clients.Server]
}

// wouldMeet reports whether a request would meet a zone if no handler before had changed it.
func wouldMeet(z *zone.Zone, server *caddyhttp.Server, moved *zone.Moved) bool {
	r, err := http.NewRequestWithContext(context.Background(), moved.Method, "http://host"+moved.Came, http.NoBody)
	if err != nil {
		return false
	}
	r.Host, r.RequestURI, r.RemoteAddr = moved.Host, moved.Came, "127.0.0.1:1"
	r.URL.Scheme, r.URL.Host = "", ""
	met, err := z.MayMeet(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), walk.Discard(), server))
	return err == nil && met
}
