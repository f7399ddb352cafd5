package zone

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// errTooEarly means what it means in Caddy's own matchers of addresses: before the TLS handshake is
// complete, the client's address may be forged. The client sends the request again.
var errTooEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

// Meet reports whether a request meets the zone, and sets what to ask the store about it. It counts
// nothing. Networks are those that have overrides in the zone; nil without them. Without a logger it does not warn of requests
// that have no valid limit.
func (z *Zone) Meet(c *Check, r *placeholder.Request, networks *store.Networks, log *zap.Logger) (met bool, err error) {
	meets, err := z.asksMatchers(r.Request)
	if err != nil || meets == no {
		return false, err
	}
	if z.Template.HasAddress && r.TLS != nil && !r.TLS.HandshakeComplete {
		return true, caddyhttp.Error(http.StatusTooEarly, errTooEarly)
	}
	if z.Fields != nil {
		if met, decided, err := z.meetBody(c, r, meets, networks); err != nil || decided || !met {
			return met, err
		}
	}
	c.Policy, c.Cost = z.Policy, z.Cost.Number
	if c.Key, c.Repeated = z.Template.Expand(r); z.HasPolicies || c.Repeated != nil {
		err = z.Apply(c, r, networks, log)
	}
	if err == nil && networks.Any() {
		z.applyNetwork(c, networks)
	}
	return true, err
}
