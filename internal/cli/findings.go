package cli

import (
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// findingsOf are the findings about something.
type findingsOf struct {
	about    string
	findings []adminapi.Finding
}

// groups divides findings by what they are about. What several zones have in common, as in an outage of their store, is one
// finding about all of them. The worst come first, in a group too, and otherwise all keep their order.
func groups(findings []adminapi.Finding) (all []findingsOf) {
	common := make(map[adminapi.Finding][]string) // the zones with a finding that is not ok
	for _, f := range findings {
		if of := ofAnyZone(f); f.Zone != "" && f.Level != adminapi.LevelOK && !slices.Contains(common[of], shellWord(f.Zone)) {
			common[of] = append(common[of], shellWord(f.Zone))
		}
	}
	for _, f := range findings {
		about, zones := subject(&f), common[ofAnyZone(f)]
		if f.Zone != "" && len(zones) > 1 {
			about = "zones " + strings.Join(zones, ", ")
		}
		at := slices.IndexFunc(all, func(g findingsOf) bool { return g.about == about })
		if at < 0 {
			at, all = len(all), append(all, findingsOf{about: about})
		}
		if f.Zone == "" || len(zones) < 2 || !slices.ContainsFunc(all[at].findings, func(known adminapi.Finding) bool { return ofAnyZone(known) == ofAnyZone(f) }) {
			all[at].findings = append(all[at].findings, f)
		}
	}
	for _, group := range all {
		slices.SortStableFunc(group.findings, worseFirst)
	}
	slices.SortStableFunc(all, func(a, b findingsOf) int { return worseFirst(a.findings[0], b.findings[0]) })
	return all
}

// ofAnyZone returns a finding without its zone.
func ofAnyZone(f adminapi.Finding) adminapi.Finding {
	f.Zone = ""
	return f
}

// subject names what a finding is about.
func subject(f *adminapi.Finding) string {
	switch {
	case f.Server != "":
		return "server " + shellWord(f.Server)
	case f.Zone != "":
		return "zone " + shellWord(f.Zone)
	case f.Adaptive != "":
		return "adaptive_concurrency " + shellWord(f.Adaptive)
	case f.Store != "":
		return "store " + printable(f.Store)
	}
	return "config"
}
