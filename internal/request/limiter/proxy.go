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

// forwardedBy finds a proxy that is taken for the client, or one between the client and a trusted proxy, such as a CDN in
// front of a load balancer: there a header says that the client is another one than the one that counts. Without a proxy,
// there is no field.
func forwardedBy(z *zone.Zone, r *placeholder.Request) (seen clientip.Forwarding) {
	trusted, _ := r.Vars[caddyhttp.TrustedProxyVarKey].(bool)
	byClient := z.Template.Uses("http.vars.client_ip")
	if seen.Remote, seen.Behind = clientip.Remote(r.Request), trusted && byClient; seen.Behind {
		seen.Remote = clientip.Client(r.Request)
	}
	carried := slices.IndexFunc(forwarding, func(field string) bool {
		values := r.Header[field]
		return len(values) > 0 && (!seen.Behind || isOther(values[0], seen.Remote))
	})
	if carried < 0 {
		return seen
	}
	seen.Field, seen.Found = forwarding[carried], seen.Remote+" is not a trusted proxy"
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	connection := "the key has the address of the connection, " + seen.Remote
	switch {
	case seen.Behind && seen.Field != forwardedFor:
		seen.Found, seen.Fix = "client_ip_headers does not name it", clientip.ReadHeader.With(seen.Field)
	case seen.Behind:
		seen.Fix = clientip.TrustProxy.With()
	case trusted:
		seen.Found, seen.Fix = connection, clientip.KeyOfTrusted.With()
	case seen.Remote == "@": // the other end of a Unix socket
		seen.Fix = clientip.TrustSocket.With()
	case seen.Field == "Forwarded":
		seen.Fix = clientip.SendForwarded.With()
	case seen.Field != forwardedFor:
		seen.Fix = clientip.ReadHeader.With(seen.Field)
	case !byClient:
		seen.Found, seen.Fix = connection, clientip.KeyByClient.With()
	case server != nil && server.TrustedProxiesStrict > 0:
		seen.Fix = clientip.TrustProxy.With()
	default:
		seen.Fix = clientip.TrustStrictly.With()
	}
	return seen
}

// isOther reports whether the first address in a header is that of another client than the one that counts.
func isOther(value, client string) bool {
	first, _, _ := strings.Cut(value, ",")
	said, err := netip.ParseAddr(strings.TrimSpace(first))
	counts, unclear := netip.ParseAddr(client)
	return err == nil && unclear == nil && said.Unmap() != counts.Unmap()
}
