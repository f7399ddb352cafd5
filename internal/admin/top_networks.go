package admin

import (
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showNetworks shows the networks of a zone, or of all zones with addresses in their keys, with the most requests.
func showNetworks(c *adminCall) (any, error) {
	if c.zone != nil && !c.zone.hasNetworks() {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	if err := c.checkParameters("share"); err != nil {
		return nil, err
	}
	share, err := c.readShare()
	if err != nil {
		return nil, err
	}
	if c.zone != nil {
		return c.zone.topNetworks(c.view, share), nil
	}
	answers := []adminapi.Networks{}
	for _, z := range runningZones() {
		if z.hasNetworks() {
			answers = append(answers, z.topNetworks(c.view, share))
		}
	}
	return answers, nil
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

// hasNetworks reports whether the keys of the zone have an address.
func (z *runningZone) hasNetworks() bool { return z.Template.HasAddress }

// countNetworks returns the networks that the zone has counted. It begins to count them, if that is not done yet.
func (z *runningZone) countNetworks() *fleet.Networks {
	return fleet.NewNetworks(z.Stats.Networks.Look(z.Template.Address))
}

// topNetworks adds up the networks of all instances.
func (z *runningZone) topNetworks(view *fleet.View, share float64) adminapi.Networks {
	counted := []*fleet.Networks{z.countNetworks()}
	for told := range view.Of(z.Name) {
		if told.Networks != nil {
			counted = append(counted, told.Networks)
		}
	}
	of := fleet.MergeNetworks(share, counted)
	answer := adminapi.Networks{Zone: z.Name, Since: of.Since, Requests: of.Requests, Share: share, Networks: make([]adminapi.NetworkCount, len(of.Top))}
	if float64(of.Unlisted) >= max(1, share*float64(of.Requests)) {
		answer.Unlisted = of.Unlisted
	}
	for i := range of.Top {
		n := &of.Top[i]
		answer.Networks[i] = adminapi.NetworkCount{
			Network: n.Network.String(), Requests: n.Requests.AtLeast, Refused: n.Refused.AtLeast, Error: n.Requests.Error,
			Keys: n.Keys, KeysError: topk.KeysError, KeysMost: n.KeysMost, Own: n.Own,
		}
	}
	return answer
}
