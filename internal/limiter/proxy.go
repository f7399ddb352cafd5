package limiter

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
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
var forwarding = []string{forwardedFor, "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"}

// forwardedFor is the one that Caddy reads if it is told no other.
const forwardedFor = "X-Forwarded-For"

// check looks at a request of zone i, whose key has the client's address.
func (p *proxyCheck) check(i int, z *zone.Zone, r *placeholder.Request) {
	if p.first[i].Load() < sample {
		p.first[i].Add(1)
	} else if rand.Uint32N(sample) > 0 {
		return
	}
	z.Forwarded.Look()
	seen := forwardedBy(z, r)
	if seen.Field == "" {
		return
	}
	seen.Found = "requests carry " + seen.Field + ", but " + seen.Found + ", so that all clients behind it share one limit"
	z.Forwarded.Note(seen)
	if z.Forwarded.IsProxy() && p.last.Allow() {
		p.log.Warn(seen.Found+"; "+seen.Fix.String(), zap.String("zone", z.Name), zap.String("remote_ip", seen.Remote))
	}
}

// forwardedBy finds a proxy that is taken for the client. Without one, there is no field.
func forwardedBy(z *zone.Zone, r *placeholder.Request) (seen clientip.Forwarding) {
	trusted, _ := r.Vars[caddyhttp.TrustedProxyVarKey].(bool)
	byClient := slices.ContainsFunc(z.Template.Parts, func(p key.Part) bool { return p.Placeholder == "http.vars.client_ip" })
	if trusted && byClient {
		return behind(r)
	}
	carried := slices.IndexFunc(forwarding, func(field string) bool { return len(r.Header[field]) > 0 })
	if carried < 0 {
		return seen
	}
	seen = clientip.Forwarding{Field: forwarding[carried], Remote: clientip.Remote(r.Request)}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	seen.Found = "the key has the address of the connection, " + seen.Remote
	switch {
	case trusted:
		seen.Fix = clientip.KeyOfTrusted.With()
		return seen
	case seen.Remote == "@": // the other end of a Unix socket
		seen.Fix = clientip.TrustSocket.With()
	case seen.Field == "Forwarded":
		seen.Fix = clientip.SendForwarded.With()
	case seen.Field != forwardedFor:
		seen.Fix = clientip.ReadHeader.With(seen.Field)
	case !byClient:
		seen.Fix = clientip.KeyByClient.With()
		return seen
	case server != nil && server.TrustedProxiesStrict > 0:
		seen.Fix = clientip.TrustProxy.With()
	default:
		seen.Fix = clientip.TrustStrictly.With()
	}
	seen.Found = seen.Remote + " is not a trusted proxy"
	return seen
}

// behind finds a proxy between the client and a trusted proxy, such as a CDN in front of a load balancer: the
// first proxy says that its client is another one than the one that counts.
func behind(r *placeholder.Request) (seen clientip.Forwarding) {
	counts, err := netip.ParseAddr(clientip.Client(r.Request))
	if err != nil {
		return seen
	}
	for _, field := range forwarding {
		if values := r.Header[field]; len(values) > 0 {
			first, _, _ := strings.Cut(values[0], ",")
			said, err := netip.ParseAddr(strings.TrimSpace(first))
			switch {
			case err != nil || said.Unmap() == counts.Unmap():
				continue
			case field == forwardedFor:
				seen.Found, seen.Fix = counts.String()+" is not a trusted proxy", clientip.TrustProxy.With()
			default:
				seen.Found, seen.Fix = "client_ip_headers does not name it", clientip.ReadHeader.With(field)
			}
			seen.Field, seen.Remote, seen.Behind = field, counts.String(), true
			return seen
		}
	}
	return seen
}
