package admin

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// wishNetworks begins the wish to know the networks with the most requests.
const wishNetworks = "networks "

// wishOfNetworks is the wish at the moment. It stays the same for a while, so that instances hear it once.
func wishOfNetworks() string {
	return fmt.Sprint(wishNetworks, time.Now().Unix()/int64(store.LookLife/time.Second/2))
}

// addNetworks adds the networks of zones to a report while people who look wish that. The lock of the reporter is held.
func (r *reporter) addNetworks(report *fleet.Report, zones []*runningZone, now time.Time) {
	if now.After(r.networks) {
		return
	}
	report.Networks = true
	n := 0
	for i, z := range zones {
		if !z.Template.HasAddress {
			continue
		}
		if n++; n > maxLists {
			report.Omitted.Networks++
			continue
		}
		report.Zones[i].Networks = fleet.NewNetworks(z.countNetworks())
	}
}

// countNetworks counts the networks of the zone, if it is not done yet.
func (z *runningZone) countNetworks() *topk.Networks {
	return z.Stats.Networks.Look(z.Template.Address)
}

// reportedNetworks returns the networks of the zones of an instance.
func reportedNetworks(c *adminCall, _ json.RawMessage, m *fleet.Member) any {
	lists := []adminapi.Networks{}
	share, _ := c.readShare() // this instance has read it before
	for i := range m.Report.Zones {
		told := &m.Report.Zones[i]
		if told.Networks == nil || c.zone != nil && c.zone.Name != told.Name {
			continue
		}
		list := mergedNetworks(told.Name, share, told.Networks)
		if c.zone != nil {
			return list
		}
		lists = append(lists, list)
	}
	if c.zone != nil || !m.Report.Networks {
		return nil
	}
	return lists
}

// sumNetworks adds up the networks of all instances, for each zone that the call is about.
func (c *adminCall) sumNetworks(view *fleet.View) (all []adminapi.Networks, err error) {
	share, err := c.readShare()
	if err != nil {
		return nil, err
	}
	all = []adminapi.Networks{}
	for _, z := range runningZones() {
		if !z.Template.HasAddress || c.zone != nil && c.zone.Name != z.Name {
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
		all = append(all, mergedNetworks(z.Name, share, of...))
	}
	return all, nil
}

// mergedNetworks lists the networks of a zone of some instances.
func mergedNetworks(zone string, share float64, of ...*fleet.Networks) adminapi.Networks {
	sum := fleet.MergeNetworks(share, of)
	list := heavyNetworks(zone, share, sum.Top, sum.Requests, sum.Since)
	for i := range sum.Top {
		if n := sum.KeysMost[sum.Top[i].Network]; n > sum.Top[i].Keys {
			list.Networks[i].KeysMost = n
		}
	}
	if float64(sum.Unlisted) >= max(1, share*float64(sum.Requests)) {
		list.Unlisted = sum.Unlisted
	}
	return list
}

// isNetworks reports whether a route is about the networks with the most requests.
func isNetworks(route string) bool {
	return route == "networks" || route == "zones/*/networks"
}
