package limiter

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// forwarding are the headers in which proxies pass on the address of their client.
var forwarding = []string{forwardedFor, "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"}

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
	if seen.Field == "" {
		return
	}
	seen.Found = "requests carry " + seen.Field + ", but " + seen.Found + ", so that all clients behind it share one limit"
	z.Forwarded.Note(seen)
	if z.Forwarded.IsProxy() && l.warned.Allow() {
		l.Logger.Warn(seen.Found+"; "+seen.Fix.String(), zap.String("zone", z.Name), zap.String("remote_ip", seen.Remote))
	}
}

// forwardedBy finds a proxy that is taken for the client. Without one, there is no field.
func forwardedBy(z *zone.Zone, r *placeholder.Request) (seen clientip.Forwarding) {
	trusted, _ := r.Vars[caddyhttp.TrustedProxyVarKey].(bool)
	byClient := z.Template.Uses("http.vars.client_ip")
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
