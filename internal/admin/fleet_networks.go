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

// reportedNetworks returns the networks of the zones of an instance.
func reportedNetworks(c *adminCall, _ json.RawMessage, m *fleet.Member) any {
	lists := []adminapi.Networks{}
	share, _ := c.readShare() // this instance has read it before
	for i := range m.Report.Zones {
		told := &m.Report.Zones[i]
		if told.Networks == nil || c.zone != nil && c.zone.Name != told.Name {
			continue
		}
		list := networksOf(told.Name, share, fleet.MergeNetworks(share, []*fleet.Networks{told.Networks}))
		if c.zone != nil {
			return list
		}
		lists = append(lists, list)
	}
	if c.zone != nil {
		return nil
	}
	return lists
}

// sumNetworks adds up the networks of all instances, for each zone that the call is about.
func (c *adminCall) sumNetworks(view *fleet.View) ([]adminapi.Networks, error) {
	share, err := c.readShare()
	if err != nil {
		return nil, err
	}
	all := []adminapi.Networks{}
	for _, z := range runningZones() {
		if !z.hasNetworks() || c.zone != nil && c.zone.Name != z.Name {
			continue
		}
		of := []*fleet.Networks{fleet.NewNetworks(z.countNetworks())}
		for _, m := range view.Members[1:] {
			if m.Report == nil {
				continue
			}
			for i := range m.Report.Zones {
				if told := &m.Report.Zones[i]; told.Name == z.Name && told.Networks != nil {
					of = append(of, told.Networks)
				}
			}
		}
		all = append(all, networksOf(z.Name, share, fleet.MergeNetworks(share, of)))
	}
	return all, nil
}

// isNetworks reports whether a route shows networks.
func isNetworks(route string) bool { return strings.HasSuffix(route, "networks") }

// countNetworks counts the networks of the zone, if it is not done yet.
func (z *runningZone) countNetworks() *topk.Networks {
	return z.Stats.Networks.Look(z.Template.Address)
}
