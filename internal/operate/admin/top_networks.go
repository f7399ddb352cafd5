package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// showNetworks shows the networks with the most requests, of zones with addresses in their keys.
func showNetworks(c *adminCall) (any, error) {
	if c.zone != nil && !c.zone.hasNetworks() {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	zones := slices.DeleteFunc(c.zones(), func(z *runningZone) bool { return !z.hasNetworks() })
	return each(zones, (*runningZone).countNetworks), nil
}

// hasNetworks reports whether the keys of the zone have an address.
func (z *runningZone) hasNetworks() bool { return z.Template.HasAddress }

// share is the part of all requests from which on a network is listed.
const share = 0.01

// countNetworks returns the networks that the zone has counted. It begins to count them, if that is not done yet.
func (z *runningZone) countNetworks() adminapi.Networks {
	top, requests, since := z.Stats.Networks.Look(z.Template.Address).Top(share)
	answer := adminapi.Networks{Zone: z.Name, Since: since, Requests: requests, Networks: make([]adminapi.NetworkCount, len(top))}
	for i, n := range top {
		answer.Networks[i] = adminapi.NetworkCount{Network: n.Network.String(), Requests: n.Requests.AtLeast, Refused: n.Refused}
	}
	return answer
}
