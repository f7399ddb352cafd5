package limiter

import (
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// forwarding are the headers in which proxies pass on the address of their client.
var forwarding = []string{forwardedFor, "Cf-Connecting-Ip", "True-Client-Ip"}

// forwardedFor is the one that Caddy reads if it is told no other.
const forwardedFor = "X-Forwarded-For"

// checkProxy warns about requests through a proxy that Caddy does not trust. All clients behind it
// share the limits of its address, and its users only see that they are refused. It looks at a request of a zone
// whose key has the client's address.
func (l *Limiter) checkProxy(z *zone.Zone, r *placeholder.Request) {
	if !z.Forwarded.Look() {
		return
	}
	seen := forwardedBy(z, r)
	if seen == nil {
		return
	}
	z.Forwarded.Note(seen)
	if z.Forwarded.IsProxy() && l.warned.Allow() {
		l.Logger.Warn(seen.Found+"; "+seen.Fix.String(), zap.String("zone", z.Name), zap.String("remote_ip", seen.Remote))
	}
}

// forwardedBy finds a proxy that is taken for the client, such as a CDN in front of a trusted load balancer: a header
// names another client. It is nil without one.
func forwardedBy(z *zone.Zone, r *placeholder.Request) *clientip.Forwarding {
	counts, byClient := clientip.Remote(r.Request), z.Template.Uses("http.vars.client_ip")
	if trusted, _ := r.Vars[caddyhttp.TrustedProxyVarKey].(bool); trusted && byClient {
		counts = clientip.Client(r.Request)
	}
	address, _ := netip.ParseAddr(counts) // none at the other end of a Unix socket
	for _, field := range forwarding {
		said, _, _ := strings.Cut(r.Header.Get(field), ",")
		client, err := netip.ParseAddr(strings.TrimSpace(said))
		if err != nil || client.Unmap() == address.Unmap() {
			continue
		}
		fix := clientip.TrustStrictly.With()
		switch {
		case !address.IsValid():
			fix = clientip.TrustSocket.With()
		case !byClient:
			fix = clientip.KeyByClient.With()
		case field != forwardedFor:
			fix = clientip.ReadHeader.With(field)
		}
		found := "requests carry " + field + ", but the address that counts is " + counts + ", so that all clients behind it share one limit"
		return &clientip.Forwarding{Remote: counts, Found: found, Fix: fix}
	}
	return nil
}
