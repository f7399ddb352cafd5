package limiter

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// proxyCheck warns about requests through a proxy that Caddy does not trust. All clients behind it
// share the limits of its address, and its users only see that they are refused.
type proxyCheck struct {
	log  *zap.Logger
	last throttle.Throttle
	next []atomic.Int64 // by zone: when to look again, on the limiter's clock; 0: never looked
}

func newProxyCheck(c Config) proxyCheck {
	return proxyCheck{log: c.Logger, next: make([]atomic.Int64, len(c.Zones))}
}

// sampleInterval is how often a request of a zone is looked at.
const sampleInterval = 100 * time.Millisecond

// forwarding are the header fields in which proxies pass on the address of their client.
var forwarding = []string{"X-Forwarded-For", "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"}

// check looks at a request of zone i, whose key has the client's address.
func (p *proxyCheck) check(i int, z *zone.Zone, r *http.Request, now time.Duration) {
	next := p.next[i].Load()
	if int64(now) < next && next != 0 || !p.next[i].CompareAndSwap(next, int64(now+sampleInterval)) {
		return
	}
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	byClient := slices.ContainsFunc(z.Template.Parts, func(p key.Part) bool { return p.Placeholder == "http.vars.client_ip" })
	if trusted && byClient {
		return
	}
	for _, field := range forwarding {
		if len(r.Header[field]) == 0 {
			continue
		}
		if !p.last.Allow() {
			return
		}
		remote, fix := clientip.Remote(r), "add it to trusted_proxies"
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
