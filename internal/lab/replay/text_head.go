package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// This file has what comes before the zones in a report: the verdict, what was read, and what is not known.

const maxLogs = 3 // that are named

// affected returns the zones, those first that refuse most.
func (r *Result) affected() []*Zone {
	zones := slices.Clone(r.Zones)
	slices.SortStableFunc(zones, func(a, b *Zone) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Requests, a.Requests))
	})
	return zones
}

// verdict writes what the zone that is affected most would have done, and a line for each zone if there are several.
func (t *report) verdict() {
	zones := t.affected()
	switch {
	case t.Requests == 0 || len(zones) == 0:
		return
	case zones[0].Refused == 0:
		t.line("No request would have been refused.")
	default:
		z := zones[0]
		t.wrap("", "  ", fmt.Sprintf("Zone %s would have refused %s of its requests, and %s of %s.",
			say.Printable(z.Name), percent(z.Refused, z.Requests), Count(int64(z.KeysRefused)), Plural(int64(z.Keys), "client")))
	}
	if len(zones) > 1 {
		t.line("\n  %-32s %12s %10s %9s %10s", "ZONE", "requests", "refused", "", "clients")
		for _, z := range zones {
			t.line("  %-32s %12s %10s %9s %10s", say.Cut(say.Printable(z.Name), 32), Count(z.Requests), Count(z.Refused), percent(z.Refused, z.Requests), Count(int64(z.KeysRefused)))
		}
	}
	t.WriteByte('\n')
}

// unknown writes what the logs do not tell.
func (t *report) unknown() {
	if len(t.Unknown) == 0 {
		return
	}
	t.line("\nNOT KNOWN FROM THE LOGS")
	for _, u := range t.Unknown {
		t.wrap("  ", "    ", u)
	}
}

// head writes what was read.
func (t *report) head() {
	if t.Requests == 0 {
		t.line("no requests")
	} else {
		t.line("%s, %s by %s", t.span(), Plural(t.Requests, "request"), Plural(int64(t.Clients), "client"))
	}
	var logs []string
	for _, l := range t.Logs[:min(len(t.Logs), maxLogs)] {
		logs = append(logs, say.Cut(say.Printable(l.Name), Width-10))
	}
	if more := len(t.Logs) - maxLogs; more > 0 {
		logs = append(logs, fmt.Sprintf("and %d more", more))
	}
	config := ""
	if t.Config != "" {
		config = "; config " + say.Cut(say.Printable(t.Config), Width-10)
	}
	t.wrap("", "  ", fmt.Sprintf("%s: %s, %.1f s%s", Plural(int64(len(t.Logs)), "log"), cmp.Or(strings.Join(logs, ", "), "none"), t.Took.Seconds(), config))
	if t.NoRequests > 0 {
		t.line("%s not about requests", Plural(t.NoRequests, "line"))
	}
	switch n := t.NotUnderstood; {
	case n*100 > t.Lines:
		t.wrap("", "  ", fmt.Sprintf("WARNING: %s of %s (%s) not understood: all figures are too low, such as:", Count(n), Plural(t.Lines, "line"), percent(n, t.Lines)))
	case n > 0:
		t.line("%s not understood, such as:", Plural(n, "line"))
	}
	for _, bad := range t.FirstBad {
		t.wrap("  ", "    ", bad)
	}
}
