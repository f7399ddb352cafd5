package admin

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
)

// What another instance would answer, by its report.

// reportedZones returns the zones of an instance. How they are defined is known of this instance if both define them alike.
func reportedZones(_ *adminCall, mine json.RawMessage, m *fleet.Member) any {
	var here []adminapi.Zone
	if json.Unmarshal(mine, &here) != nil {
		return nil
	}
	return describeZones(here, m)
}

func reportedZone(_ *adminCall, mine json.RawMessage, m *fleet.Member) any {
	var here adminapi.Zone
	if json.Unmarshal(mine, &here) != nil {
		return nil
	}
	for _, z := range describeZones([]adminapi.Zone{here}, m) {
		if z.Name == here.Name {
			return z
		}
	}
	return nil
}

// describeZones returns the zones of an instance by those of this one.
func describeZones(here []adminapi.Zone, m *fleet.Member) []adminapi.Zone {
	zones := make([]adminapi.Zone, 0, len(m.Report.Zones))
	for _, told := range m.Report.Zones {
		z := adminapi.Zone{Name: told.Name, Limit: "another limit or key than here"}
		i := slices.IndexFunc(here, func(z adminapi.Zone) bool { return z.Name == told.Name })
		switch {
		case i >= 0 && !slices.Contains(m.Differs, told.Name):
			z = here[i]
			z.Keys = nil
		case i >= 0:
			z.KeyForm, z.Store, z.OnStoreError = here[i].KeyForm, here[i].Store, here[i].OnStoreError
		}
		z.Totals, z.Rate, z.NearLimit, z.ZoneCosts, z.InUse = told.Totals, told.Rate, told.Near, told.ZoneCosts, told.InUse
		zones = append(zones, z)
	}
	return zones
}

// reportedTops returns the most frequent keys of the zones of an instance.
func reportedTops(c *adminCall, _ json.RawMessage, m *fleet.Member) any {
	n, err := c.intParameter("n", 20, 1, 1000)
	if err != nil {
		return nil
	}
	lists := []adminapi.Top{}
	for _, told := range m.Report.Zones {
		if told.Keys == nil || c.zone != nil && c.zone.Name != told.Name {
			continue
		}
		list := told.Keys.By(told.Name, cmp.Or(c.query.Get("by"), fleet.Kinds[0]), int(n))
		if here, err := findZone(told.Name); err == nil {
			for i := range list.Keys {
				list.Keys[i].KeyText = here.split(list.Keys[i].KeyText)
			}
		}
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

// reportedKey returns what an instance has lately counted of a key whose state is in the store.
func reportedKey(c *adminCall, mine json.RawMessage, m *fleet.Member) any {
	var k adminapi.Key
	i := slices.IndexFunc(m.Report.Zones, func(z fleet.Zone) bool { return z.Name == c.zone.Name })
	if json.Unmarshal(mine, &k) != nil || i < 0 || slices.Contains(m.Differs, c.zone.Name) {
		return nil
	}
	k.Lately = nil
	if of, n := m.Report.Zones[i].Keys.Of(&k.KeyText); n != nil && of.Since != nil {
		k.Lately = &adminapi.Lately{Since: *of.Since, Plan: n.Plan, Requests: n.Requests, Refused: n.Refused, DryRun: n.DryRun}
	}
	return k
}

func reportedDiagnosis(_ *adminCall, _ json.RawMessage, m *fleet.Member) any {
	if m.Report.Diagnosis == nil || m.State != adminapi.StateReports {
		return nil
	}
	return m.Report.Diagnosis
}
