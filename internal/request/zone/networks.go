package zone

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TakesNetworks reports whether operators may set overrides for networks: the keys are addresses, and may have overrides.
func (z *Zone) TakesNetworks() bool {
	return z.Overrides && z.Template.IsAddress() && len(z.Rules()) > 0
}

// network returns the network that decides about the key, or nil.
func (c *Check) network() *store.Network {
	if !c.networks.Any() {
		return nil
	}
	return c.networks.Find(key.ParseAddress(c.Key))
}

// askNetwork has the network of the key decide, if there is one.
func (z *Zone) askNetwork(c *Check, _ *placeholder.Request) (found, error) {
	n := c.network()
	if n == nil {
		return passes, nil
	}
	switch n.Override.Kind {
	case store.KindExempt:
		c.Network = n
		return c.skip()
	case store.KindBanned:
		left := int64(-1)
		if l := c.networks.Left(n); l > 0 {
			left = l.Microseconds()
		}
		c.Network, c.Rejection = n, z.Exceeded
		c.Decision = algorithms.Decision{Quota: c.Policy.Quota}.Ban(left)
		return ends, nil
	case store.KindLimit:
		if p := c.Policy.Overruled(n); p != nil {
			c.Policy, c.Network = p, n
		}
	}
	return passes, nil
}
