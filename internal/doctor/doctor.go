// Package doctor finds what is wrong with the limits of a running Caddy. Its checks are functions
// of facts, which others collect, so they need no server.
package doctor

import (
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// Facts are what is known of a running Caddy.
type Facts struct {
	Servers []Server
	Zones   []Zone
	Stores  []Store

	// Adaptive are the adaptive limits.
	Adaptive []adminapi.Adaptive

	// Warnings are those of the config that name no zone.
	Warnings []string
}

// Examine makes all checks. What fails comes first, then what warns, and what is about a store before what is about zones.
func Examine(f *Facts) adminapi.Diagnosis {
	all := run(nil, []check[Facts]{{"config", func(f *Facts) []result { return repeated(f.Warnings) }}}, f, func(*adminapi.Finding) {})
	if len(f.Zones)+len(f.Adaptive)+len(f.Warnings) == 0 { // a handler without zones warns
		all = append(all, adminapi.Finding{
			Level: adminapi.LevelWarn, Check: "zones", Found: "the running config has no zones, so it limits nothing",
			Fix: addZone.With(),
		})
	}
	for i := range f.Servers {
		all = run(all, serverChecks, &f.Servers[i], func(found *adminapi.Finding) { found.Server = f.Servers[i].Name })
	}
	for i := range f.Stores { // before the zones that they explain
		all = run(all, storeChecks, &f.Stores[i], func(found *adminapi.Finding) { found.Store = f.Stores[i].Name })
	}
	for i := range f.Zones {
		all = run(all, zoneChecks, &f.Zones[i], func(found *adminapi.Finding) { found.Zone = f.Zones[i].Name })
	}
	for i := range f.Adaptive {
		all = run(all, adaptiveChecks, &f.Adaptive[i], func(found *adminapi.Finding) { found.Adaptive = f.Adaptive[i].Name })
	}
	slices.SortStableFunc(all, func(a, b adminapi.Finding) int { return severity[b.Level] - severity[a.Level] })
	return adminapi.Diagnosis{Level: worst(all), Findings: all}
}

// check is a check of a server, a zone or a store.
type check[T any] struct {
	name string
	look func(of *T) []result
}

// What is wrong by the checks of a store that follow is so because of what one that explains fails for, if one does.
var (
	explain = []string{"answer", "tls", "login", "rights", "replica", "round_trip"}
	follow  = []string{"breaker", "waits", "fleet"}
)

// result is what a check has found. A check that does not apply has no results.
type result struct {
	level, found string
	fix          advice.Text
}

func run[T any](all []adminapi.Finding, checks []check[T], of *T, name func(*adminapi.Finding)) []adminapi.Finding {
	explained := false
	for _, c := range checks {
		for _, r := range c.look(of) {
			if explained && slices.Contains(follow, c.name) && r.level != adminapi.LevelOK {
				continue
			}
			explained = explained || r.level == adminapi.LevelFail && slices.Contains(explain, c.name)
			f := adminapi.Finding{Level: r.level, Check: c.name, Found: r.found, Fix: r.fix}
			name(&f)
			all = append(all, f)
		}
	}
	return all
}

// severity orders the levels.
var severity = map[string]int{adminapi.LevelWarn: 1, adminapi.LevelFail: 2}

func worst(all []adminapi.Finding) string {
	level := adminapi.LevelOK
	for _, f := range all {
		if severity[f.Level] > severity[level] {
			level = f.Level
		}
	}
	return level
}

func ok(format string, args ...any) []result {
	return []result{{level: adminapi.LevelOK, found: fmt.Sprintf(format, args...)}}
}

// cannotSay is the result of a check that lacks a fact. The fix may be empty.
func cannotSay(why string, fix advice.Text) []result {
	return []result{{adminapi.LevelUnknown, "cannot say: " + why, fix}}
}

func warn(fix advice.Text, format string, args ...any) []result {
	return []result{{adminapi.LevelWarn, fmt.Sprintf(format, args...), fix}}
}

func fail(fix advice.Text, format string, args ...any) []result {
	return []result{{adminapi.LevelFail, fmt.Sprintf(format, args...), fix}}
}
