package admin

import (
	"encoding/json"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// hasNetworks reports whether the keys of the zone have an address.
func (z *runningZone) hasNetworks() bool { return z.Template.HasAddress }

// sumNetworks adds up the networks of all instances: of the zone in the path, or of each.
func sumNetworks(c *adminCall, _ json.RawMessage, view *fleet.View) (any, error) {
	share, err := c.readShare()
	switch {
	case err != nil:
		return nil, err
	case c.zone != nil:
		return c.zone.sumNetworks(view, share), nil
	}
	all := []adminapi.Networks{}
	for _, z := range runningZones() {
		if z.hasNetworks() {
			all = append(all, z.sumNetworks(view, share))
		}
	}
	return all, nil
}

func (z *runningZone) sumNetworks(view *fleet.View, share float64) adminapi.Networks {
	of := []*fleet.Networks{fleet.NewNetworks(z.countNetworks())}
	for told := range reportedOf(z.Name, view) {
		if told.Networks != nil {
			of = append(of, told.Networks)
		}
	}
	return networksOf(z.Name, share, fleet.MergeNetworks(share, of))
}

// isNetworks reports whether a route shows networks.
func isNetworks(route string) bool { return strings.HasSuffix(route, "networks") }

// countNetworks counts the networks of the zone, if it is not done yet.
func (z *runningZone) countNetworks() *topk.Networks {
	return z.Stats.Networks.Look(z.Template.Address)
}
