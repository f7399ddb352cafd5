package limiter

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// proxyCheck warns about requests through a proxy that Caddy does not trust. All clients behind it
// share the limits of its address, and its users only see that they are refused.
type proxyCheck struct {
	log   *zap.Logger
	last  throttle.Throttle
	first []atomic.Int32 // by zone: how many of its first requests were looked at
}

func newProxyCheck(c Config) proxyCheck {
	return proxyCheck{log: c.Logger, first: make([]atomic.Int32, len(c.Zones))}
}

// sample is how many of a zone's first requests are looked at. After these, one in so many is.
const sample = 64

// forwarding are the headers in which proxies pass on the address of their client.
var forwarding = []string{"X-Forwarded-For", "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"}

// check looks at a request of zone i, whose key has the client's address.
func (p *proxyCheck) check(i int, z *zone.Zone, r *placeholder.Request) {
	if p.first[i].Load() < sample {
		p.first[i].Add(1)
	} else if rand.Uint32N(sample) > 0 {
		return
	}
	z.Forwarded.Look()
	trusted, _ := r.Vars[caddyhttp.TrustedProxyVarKey].(bool)
	byClient := slices.ContainsFunc(z.Template.Parts, func(p key.Part) bool { return p.Placeholder == "http.vars.client_ip" })
	if trusted && byClient {
		return
	}
	for _, field := range forwarding {
		if len(r.Header[field]) == 0 {
			continue
		}
		remote, fix := clientip.Remote(r.Request), "add it to trusted_proxies"
		z.Forwarded.Note(field, remote)
		if !p.last.Allow() {
			return
		}
		if remote == "@" { // the other end of a Unix socket
			fix = "set trusted_proxies_unix"
		}
		fix += " in the global servers option"
		problem := remote + " is not a trusted proxy"
		if !byClient {
			problem = "the key has the address of the connection, " + remote
			fix += " and use {client_ip} in the key"
		}
		p.log.Warn("requests carry "+field+", but "+problem+", so that all clients behind it share one limit; if it is your proxy, "+fix,
			zap.String("zone", z.Name), zap.String("remote_ip", remote))
		return
	}
}
