package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// heavyKind is a kind of sets of keys that instances count, and report while people who look wish that. Reports have those of a
// zone as R, and answers as A.
type heavyKind[R, A any] struct {
	name  string // of its routes, with which the wish begins
	has   func(*runningZone) bool
	count func(*runningZone) *R                        // begins to count, if it is not done yet
	list  func(zone string, share float64, of ...*R) A // adds up what instances have counted

	in      func(*fleet.Zone) **R
	told    func(*fleet.Report) *bool
	omitted func(*fleet.Omitted) *int
	sums    func(*adminapi.FleetAnswer) *[]A
}

var networkSets = &heavyKind[fleet.Networks, adminapi.Networks]{
	name:  "networks",
	has:   func(z *runningZone) bool { return z.Template.HasAddress },
	count: func(z *runningZone) *fleet.Networks { return fleet.NewNetworks(z.countNetworks()) },
	list: func(zone string, share float64, of ...*fleet.Networks) adminapi.Networks {
		return heavyNetworks(zone, share, fleet.MergeNetworks(share, of))
	},
	in:      func(z *fleet.Zone) **fleet.Networks { return &z.Networks },
	told:    func(r *fleet.Report) *bool { return &r.Networks },
	omitted: func(o *fleet.Omitted) *int { return &o.Networks },
	sums:    func(a *adminapi.FleetAnswer) *[]adminapi.Networks { return &a.Networks },
}

var groupSets = &heavyKind[fleet.Groups, adminapi.Groups]{
	name:  "groups",
	has:   func(z *runningZone) bool { return z.GroupTemplate != nil },
	count: func(z *runningZone) *fleet.Groups { return fleet.NewGroups(z.Group, z.countGroups()) },
	list: func(zone string, share float64, of ...*fleet.Groups) adminapi.Groups {
		return heavyGroups(zone, of[0].By, share, fleet.MergeGroups(share, of))
	},
	in:      func(z *fleet.Zone) **fleet.Groups { return &z.Groups },
	told:    func(r *fleet.Report) *bool { return &r.Groups },
	omitted: func(o *fleet.Omitted) *int { return &o.Groups },
	sums:    func(a *adminapi.FleetAnswer) *[]adminapi.Groups { return &a.Groups },
}

// heavySets is a kind of sets whatever its types are.
type heavySets interface {
	wish() string
	isWish(string) bool
	isToldBy(*fleet.Report) bool
	keepOmitted(from, to *fleet.Omitted)
	addTo(*fleet.Report, []*runningZone)
	sumUp(*adminCall, *fleet.View, *adminapi.FleetAnswer) error
}

// heavyRoutes has the kinds by the routes that show them.
var heavyRoutes = map[string]heavySets{
	"networks": networkSets, "zones/*/networks": networkSets,
	"groups": groupSets, "zones/*/groups": groupSets,
}

// wish is the wish for it at the moment. It stays the same for a while, so that instances hear it once.
func (k *heavyKind[R, A]) wish() string {
	return fmt.Sprint(k.name, " ", time.Now().Unix()/int64(store.LookLife/time.Second/2))
}

func (k *heavyKind[R, A]) isWish(wish string) bool { return strings.HasPrefix(wish, k.name+" ") }

func (k *heavyKind[R, A]) isToldBy(r *fleet.Report) bool { return *k.told(r) }

// keepOmitted copies how many zones are told without them.
func (k *heavyKind[R, A]) keepOmitted(from, to *fleet.Omitted) { *k.omitted(to) = *k.omitted(from) }

// addTo adds the sets of zones to a report.
func (k *heavyKind[R, A]) addTo(report *fleet.Report, zones []*runningZone) {
	*k.told(report) = true
	n := 0
	for i, z := range zones {
		if !k.has(z) {
			continue
		}
		if n++; n > maxLists {
			*k.omitted(&report.Omitted)++
			continue
		}
		*k.in(&report.Zones[i]) = k.count(z)
	}
}

// reported returns the sets of the zones of an instance.
func (k *heavyKind[R, A]) reported(c *adminCall, _ json.RawMessage, m *fleet.Member) any {
	lists := []A{}
	share, _ := c.readShare() // this instance has read it before
	for i := range m.Report.Zones {
		told := &m.Report.Zones[i]
		sets := *k.in(told)
		if sets == nil || c.zone != nil && c.zone.Name != told.Name {
			continue
		}
		list := k.list(told.Name, share, sets)
		if c.zone != nil {
			return list
		}
		lists = append(lists, list)
	}
	if c.zone != nil || !k.isToldBy(m.Report) {
		return nil
	}
	return lists
}

// sumUp adds up the sets of all instances, for each zone that the call is about.
func (k *heavyKind[R, A]) sumUp(c *adminCall, view *fleet.View, answer *adminapi.FleetAnswer) error {
	share, err := c.readShare()
	if err != nil {
		return err
	}
	all := []A{}
	for _, z := range runningZones() {
		if !k.has(z) || c.zone != nil && c.zone.Name != z.Name {
			continue
		}
		of := []*R{k.count(z)}
		for _, m := range view.Members[1:] {
			if m.Report == nil {
				continue
			}
			for i := range m.Report.Zones {
				if told := &m.Report.Zones[i]; told.Name == z.Name && *k.in(told) != nil {
					of = append(of, *k.in(told))
				}
			}
		}
		all = append(all, k.list(z.Name, share, of...))
	}
	*k.sums(answer) = all
	return nil
}

// countNetworks counts the networks of the zone, if it is not done yet.
func (z *runningZone) countNetworks() *topk.Networks {
	return z.Stats.Networks.Look(z.Template.Address)
}

// countGroups counts the groups of the zone, if it is not done yet.
func (z *runningZone) countGroups() *topk.Groups {
	return z.Stats.Groups.Look(z.Group)
}
