package zone

import (
	"maps"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TakesNetworks reports whether operators may set overrides for networks: the keys are addresses, and may have overrides.
func (z *Zone) TakesNetworks() bool {
	return z.Overrides() && z.Template.IsAddress() && len(z.Rules()) > 0
}

// TakesGroups reports whether operators may set overrides for groups: the zone has groups, and networks may have overrides.
func (z *Zone) TakesGroups() bool { return z.GroupTemplate != nil && z.TakesNetworks() }

// overruling returns the network of the key that decides about a request, or else its group, or nil. It reads the group only if
// one of the zone may decide.
func (z *Zone) overruling(c *Check, r *placeholder.Request, networks *store.Networks) *store.Network {
	address := key.ParseAddress(c.Key)
	if n := networks.Find(address); n != nil || z.GroupTemplate == nil || !networks.AnyGroup() {
		return n
	}
	value, _ := z.GroupTemplate.Expand(r)
	return networks.FindGroup(address, store.Group{By: z.Group, Value: value})
}

// bansNetwork refuses a request whose network or group is banned. It reports whether it has done so.
func (z *Zone) bansNetwork(c *Check, r *placeholder.Request, networks *store.Networks) (refused bool) {
	if !networks.Any() {
		return false
	}
	if n := z.overruling(c, r, networks); n == nil || n.Override.Kind != store.KindBanned {
		return false
	}
	z.applyNetwork(c, r, networks)
	return c.Rejection != nil
}

// applyNetwork has the network of the key decide, or the group of the request, if there is one. It changes nothing that was
// rejected, or that no store decides about.
func (z *Zone) applyNetwork(c *Check, r *placeholder.Request, networks *store.Networks) {
	if c.Policy == nil || c.Rejection != nil {
		return
	}
	n := z.overruling(c, r, networks)
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

// maxOverruled bounds the policies that are kept of one policy, under limits of networks and groups.
const maxOverruled = 64

// Overruled returns the policy with the limit of a network or a group in place of its own. It is nil if the limit is for another
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
