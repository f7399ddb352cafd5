package admin

import (
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showNetworks shows the networks of a zone, or of all zones with addresses in their keys, with the most requests.
func showNetworks(c *adminCall) error {
	if c.zone != nil && !c.zone.hasNetworks() {
		return adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	if err := c.checkParameters("share"); err != nil {
		return err
	}
	share, err := c.readShare()
	if err != nil {
		return err
	}
	if c.zone != nil {
		return c.writeJSON(c.zone.topNetworks(share))
	}
	answers := []adminapi.Networks{}
	for _, z := range runningZones() {
		if z.hasNetworks() {
			answers = append(answers, z.topNetworks(share))
		}
	}
	return c.writeJSON(answers)
}

// readShare returns the share of all requests that is asked for.
func (c *adminCall) readShare() (share float64, err error) {
	text := c.query.Get("share")
	if text == "" {
		return 0.01, nil
	}
	if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0.002 && share <= 1) {
		return 0, adminError(badRequest, "share must be from 0.002 to 1, got %q", text)
	}
	return share, nil
}

func (z *runningZone) topNetworks(share float64) adminapi.Networks {
	top, total, since := z.countNetworks().Top(share)
	return networksOf(z.Name, share, fleet.MergedNetworks{Top: top, Requests: total, Since: since})
}

func networksOf(zone string, share float64, of fleet.MergedNetworks) adminapi.Networks {
	answer := adminapi.Networks{Zone: zone, Since: of.Since, Requests: of.Requests, Share: share, Networks: make([]adminapi.NetworkCount, len(of.Top))}
	if float64(of.Unlisted) >= max(1, share*float64(of.Requests)) {
		answer.Unlisted = of.Unlisted
	}
	for i := range of.Top {
		n := &of.Top[i]
		c := adminapi.NetworkCount{
			Network: n.Network.String(), Requests: n.Requests.AtLeast, Refused: n.Refused.AtLeast, Error: n.Requests.Error,
			Keys: n.Keys, KeysError: topk.KeysError, KeysMost: n.KeysMost, Own: n.Own,
		}
		if n.Before != nil {
			c.Before, c.BeforeError = &n.Before.AtLeast, n.Before.Error
		}
		answer.Networks[i] = c
	}
	return answer
}
