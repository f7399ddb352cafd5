package admin

import (
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showNetworks shows the networks of a zone, or of all zones with addresses in their keys, with the most requests.
func showNetworks(c *adminCall) error {
	if err := c.checkParameters("share"); err != nil {
		return err
	}
	share := 0.01
	if text := c.query.Get("share"); text != "" {
		var err error
		if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0.002 && share <= 1) {
			return adminError(badRequest, "share must be from 0.002 to 1, got %q", text)
		}
	}
	if c.zone != nil {
		if !c.zone.Template.HasAddress {
			return adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
		}
		return c.writeJSON(c.zone.topNetworks(share))
	}
	answers := []adminapi.Networks{}
	for _, z := range runningZones() {
		if z.Template.HasAddress {
			answers = append(answers, z.topNetworks(share))
		}
	}
	return c.writeJSON(answers)
}

func (z *runningZone) topNetworks(share float64) adminapi.Networks {
	top, total, since := z.Stats.Networks.Look(z.Template.Address).Top(share)
	answer := adminapi.Networks{Zone: z.Name, Since: since, Requests: total, Share: share, Networks: make([]adminapi.NetworkCount, len(top))}
	for i, n := range top {
		answer.Networks[i] = adminapi.NetworkCount{
			Network: n.Network.String(), Requests: n.Requests.AtLeast, Refused: n.Refused.AtLeast, Error: n.Requests.Error, Own: n.Own,
			Keys: n.Keys, KeysError: topk.KeysError,
		}
		if n.Before != nil {
			answer.Networks[i].Before, answer.Networks[i].BeforeError = &n.Before.AtLeast, n.Before.Error
		}
	}
	return answer
}
