package zone

import (
	"maps"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TakesNetworks reports whether operators may set overrides for networks: the keys are addresses, and may have overrides.
func (z *Zone) TakesNetworks() bool {
	return z.Overrides && z.Template.IsAddress() && len(z.Rules()) > 0
}

// bansNetwork refuses a request whose network is banned. It reports whether it has done so.
func (z *Zone) bansNetwork(c *Check, networks *store.Networks) (refused bool) {
	if !networks.Any() {
		return false
	}
	if n := networks.Find(key.ParseAddress(c.Key)); n == nil || n.Override.Kind != store.KindBanned {
		return false
	}
	z.applyNetwork(c, networks)
	return c.Rejection != nil
}

// applyNetwork has the network of the key decide, if there is one. It changes nothing that was rejected, or that no store decides
// about.
func (z *Zone) applyNetwork(c *Check, networks *store.Networks) {
	if c.Policy == nil || c.Rejection != nil {
		return
	}
	n := networks.Find(key.ParseAddress(c.Key))
	if n == nil {
		return
	}
	switch n.Override.Kind {
	case store.KindExempt:
		c.Policy, c.Network = nil, n
	case store.KindBanned:
		left := int64(-1)
		if l := networks.Left(n); l > 0 {
			left = l.Microseconds()
		}
		c.Network, c.Rejection = n, z.Exceeded
		c.Banned = algorithms.Decision{Quota: c.Policy.Quota}.Ban(left)
	case store.KindLimit:
		if p := c.Policy.Overruled(n); p != nil {
			c.Policy, c.Network = p, n
		}
	}
}

// maxOverruled bounds the policies that are kept of one policy, under limits of networks.
const maxOverruled = 64

// Overruled returns the policy with the limit of a network in place of its own. It is nil if the limit is for another
// algorithm, or is not valid here.
func (p *QuotaPolicy) Overruled(n *store.Network) *QuotaPolicy {
	if n.Algorithm != p.Rule.Algorithm().Name() {
		return nil
	}
	limit, known := n.Override.Limit, p.overruled.Load()
	if known != nil {
		if made, ok := (*known)[limit]; ok {
			return made
		}
	}
	made := p.withLimit(limit)
	more := map[algorithms.Limit]*QuotaPolicy{limit: made}
	if known != nil && len(*known) < maxOverruled {
		maps.Copy(more, *known)
	}
	p.overruled.Store(&more)
	return made
}

func (p *QuotaPolicy) withLimit(limit algorithms.Limit) *QuotaPolicy {
	rule, err := p.Rule.Overruled(limit)
	if err != nil {
		return nil
	}
	return p.with(rule)
}
