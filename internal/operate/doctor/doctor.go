// Package doctor finds what is wrong with the limits of a running Caddy. It has a row for each problem: whose it is, how bad it
// is, how facts show it, and what to do. Others collect the facts, so it needs no server.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

	// Instances are those of the fleet, the one that answers first. Without a fleet there are none.
	Instances []adminapi.Instance

	// Warnings are those of the config that name no zone.
	Warnings []string
}

const (
	unknown = adminapi.LevelUnknown
	warn    = adminapi.LevelWarn
	fail    = adminapi.LevelFail
)

// problem is something that may be wrong with a server, a zone, a store or an instance.
type problem[T any] struct {
	check, level string

	// found says what is wrong; empty if nothing is. What an error says behind it is better than fix, which may be nil.
	found func(of T) string
	fix   *advice.Advice
}

// when returns a text if something is so.
func when(is bool, format string, args ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

var addZone = advice.New("doctor/zones", "add a rate_limit handler with a zone")

// Examine makes all checks. The worst comes first, and what is about a store before what is about zones.
func Examine(f *Facts) adminapi.Diagnosis {
	var e findings
	for _, text := range f.Warnings {
		e.add(adminapi.Finding{}, "config", warn, text, nil)
	}
	if len(f.Zones)+len(f.Adaptive)+len(f.Warnings) == 0 { // a handler without zones warns
		e.add(adminapi.Finding{}, "zones", warn, "the running config has no zones, so it limits nothing", addZone)
	}
	for _, i := range f.Instances {
		look(&e, about("instance", i.Name), memberProblems, member{i, f.Instances})
	}
	for i := range f.Servers {
		look(&e, about("server", f.Servers[i].Server), serverProblems, &f.Servers[i])
	}
	for i := range f.Stores { // before the zones that they explain
		f.Stores[i].look(&e)
	}
	for i := range f.Zones {
		z := &f.Zones[i]
		for _, text := range z.Warnings {
			level := warn
			if z.OneKey { // the limit hits the wrong clients
				level = fail
			}
			e.add(about("zone", z.Name), "config", level, text, nil)
		}
		look(&e, about("zone", z.Name), zoneProblems, z)
	}
	for i := range f.Adaptive {
		look(&e, about("adaptive_limit", f.Adaptive[i].Name), adaptiveProblems, &f.Adaptive[i])
	}
	slices.SortStableFunc(e, adminapi.WorseFirst)
	worst := adminapi.LevelOK
	if len(e) > 0 && e[0].Level != unknown {
		worst = e[0].Level
	}
	return adminapi.Diagnosis{Level: worst, Findings: e}
}

// findings are what was found.
type findings []adminapi.Finding

// about begins a finding.
func about(of, name string) adminapi.Finding { return adminapi.Finding{Of: of, Names: []string{name}} }

// look adds the problems of servers, zones, stores or instances: the first one of each check.
func look[T any](e *findings, about adminapi.Finding, problems []problem[T], all ...T) {
	for _, of := range all {
		found := ""
		for _, p := range problems {
			if p.check == found {
				continue
			}
			if text := p.found(of); text != "" {
				found = p.check
				e.add(about, p.check, p.level, text, p.fix)
			}
		}
	}
}

// add adds a finding with its text, or the name to one of the same problem.
func (e *findings) add(f adminapi.Finding, check, level, text string, fix *advice.Advice) {
	f.Check, f.Level = check, level
	if f.Found, f.Fix = advice.Split(text); fix != nil {
		f.Fix = cmp.Or(f.Fix, fix.With())
	}
	i := slices.IndexFunc(*e, func(known adminapi.Finding) bool { return f.Of != "" && known.Is(&f) })
	if i < 0 {
		*e = append(*e, f)
	} else if known := &(*e)[i]; !slices.Contains(known.Names, f.Names[0]) {
		known.Names = append(known.Names, f.Names[0])
	}
}

// maxShown bounds lists in findings.
const maxShown = 3

// shorten lists the first few of some texts.
func shorten(texts []string) string {
	if len(texts) > maxShown {
		return strings.Join(texts[:maxShown], ", ") + " and others"
	}
	return strings.Join(texts, ", ")
}
