package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// Width is the width of the report in columns.
const Width = 80

// report writes a result as text.
type report struct {
	strings.Builder
	*Result
	zone *time.Location
}

// WriteText writes the report for people, with times in a time zone.
func (r *Result) WriteText(to io.Writer, in *time.Location) error {
	t := &report{Result: r, zone: in}
	t.verdict()
	t.head()
	t.unknown()
	for _, z := range r.affected() {
		t.WriteByte('\n')
		t.limits(z)
	}
	_, err := io.WriteString(to, t.String())
	return err
}

// line writes a line, without spaces at its end.
func (t *report) line(format string, args ...any) {
	t.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// wrap writes text in lines of at most Width columns, all but the first one indented.
func (t *report) wrap(first, indent, text string) {
	for _, line := range say.Wrap(first, indent, text, Width) {
		t.line("%s", line)
	}
}

// span is the time from the first to the last request.
func (t *report) span() string {
	from, to := t.From.In(t.zone), t.To.In(t.zone)
	const minute = "2006-01-02 15:04"
	if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		return from.Format(minute) + " to " + to.Format("15:04 MST")
	}
	return from.Format(minute) + " to " + to.Format(minute+" MST")
}

// at is a time of the logs.
func (t *report) at(moment time.Time) string {
	if t.To.Sub(t.From) < 24*time.Hour {
		return moment.In(t.zone).Format(time.TimeOnly)
	}
	return moment.In(t.zone).Format("01-02 15:04:05")
}

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
	config := ""
	if t.Config != "" {
		config = "; config " + say.Cut(say.Printable(t.Config), Width-10)
	}
	t.wrap("", "  ", fmt.Sprintf("%s, %.1f s%s", Plural(int64(len(t.Logs)), "log"), t.Took.Seconds(), config))
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

const maxShown = 10

// limits writes what a zone would have done.
func (t *report) limits(z *Zone) {
	mode := ""
	if z.DryRun {
		mode = ", not fully enforced"
	}
	t.wrap("", "  ", fmt.Sprintf("ZONE %s: %s, key %s%s", say.Printable(z.Name), z.Limit, say.Printable(cmp.Or(z.Key, "none")), mode))
	row := func(what, number, rest string) { t.line("  %-28s %12s  %s", what, number, rest) }
	if z.Unjudged != "" {
		t.wrap("  ", "    ", z.Unjudged)
	}
	if z.Requests == 0 {
		t.whatIf(z)
		return
	}
	row("requests that met it", Count(z.Requests), "")
	if z.Refused == 0 {
		row("refused", "0", "")
	} else {
		row("refused", Count(z.Refused), percent(z.Refused, z.Requests)+"  first "+t.at(*z.FirstRefused))
		row("clients ever refused", Count(int64(z.KeysRefused)), percent(int64(z.KeysRefused), int64(z.Keys))+" of clients")
	}
	meaning := map[string]string{"not_charged": "refused by another zone"}
	for _, name := range slices.Sorted(maps.Keys(z.Outcomes)) {
		if name != "allowed" && name != "limited" {
			row("  "+strings.ReplaceAll(name, "_", " "), Count(z.Outcomes[name]), meaning[name])
		}
	}
	if b := z.Busiest; b != nil {
		used := Count(b.Used)
		if z.Length != "" {
			used += "/" + z.Length
		}
		row("busiest client never refused", used, say.Cut(say.Printable(b.Key), 32))
	}
	t.top(z)
	t.whatIf(z)
	t.suggestion(z)
}

// top writes the keys that are refused most.
func (t *report) top(z *Zone) {
	if len(z.Top) == 0 {
		return
	}
	t.line("\n  %-32s %10s  %8s  %s", "WHO WOULD BE REFUSED", "refused", "of sent", "first")
	for _, k := range z.Top[:min(len(z.Top), maxShown)] {
		t.line("  %-32s %10s  %8s  %s", say.Cut(say.Printable(cmp.Or(k.Key, "(no key)")), 32), Count(k.Refused), percent(k.Refused, k.Requests), t.at(k.FirstRefused))
		about := k.About
		if k.Agent != "" {
			about += "; " + say.Printable(k.Agent)
		}
		t.line("    %s", say.Cut(about, Width-4))
	}
	if more := z.KeysRefused - min(len(z.Top), maxShown); more > 0 {
		t.line("    and %s more", Count(int64(more)))
	}
}

// About says which statuses the refused requests of a key have in the log, and what makes it look like people.
func About(statuses map[int]int64, signs []string, shared bool) string {
	all := slices.SortedFunc(maps.Keys(statuses), func(a, b int) int { return cmp.Or(cmp.Compare(statuses[b], statuses[a]), cmp.Compare(a, b)) })
	total, parts := int64(0), []string{}
	for _, n := range statuses {
		total += n
	}
	for _, status := range all[:min(len(all), 3)] {
		parts = append(parts, fmt.Sprintf("%d %s", status, percent(statuses[status], total)))
	}
	about := strings.Join(parts, ", ")
	switch looks := strings.Join(signs, ", "); {
	case looks == "":
		return about
	case shared:
		return about + "; looks like several people: " + looks
	default:
		return about + "; looks like a person: " + looks
	}
}

// otherZones says what the rows of "what if" leave out, and the suggestion does not.
const otherZones = "Requests that other zones refuse are not counted here, because those zones keep their limits. The suggestion counts everything that a client sends."

// whatIf writes what other limits would do.
func (t *report) whatIf(z *Zone) {
	rows := slices.DeleteFunc(slices.Clone(z.WhatIf), func(w WhatIf) bool { return w.Curve })
	if !slices.ContainsFunc(rows, func(w WhatIf) bool { return !w.Configured }) {
		return
	}
	t.line("\n  %-9s %-12s %10s  %15s", "WHAT IF", "limit", "refused", "clients refused")
	for _, w := range rows {
		mark, note := "", ""
		if w.Configured {
			mark = "* "
		}
		if w.Suggested {
			note = "suggested"
		}
		refused, keys := Count(w.Refused), Count(int64(w.KeysRefused))
		if z.Requests == 0 {
			refused, keys = "–", "–"
		}
		t.line("  %9s %-12s %10s  %15s  %s", mark, w.Limit, refused, keys, note)
	}
	if len(t.Zones) > 1 {
		t.wrap("  ", "    ", otherZones)
	}
}

// suggestion writes the limit that separates a few clients from all others, or why there is none.
func (t *report) suggestion(z *Zone) {
	s := z.Suggestion
	if s == nil {
		return
	}
	title := s.Limit
	if title == "" {
		title = "no suggestion: " + s.Failure
	}
	t.wrap("\n  SUGGESTION   ", "    ", title)
	for _, reason := range s.Reasons {
		t.wrap("    - ", "      ", reason)
	}
}

// Count formats a number with commas.
func Count(n int64) string { return humanize.Comma(n) }

// Plural returns a number of things, with commas.
func Plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return Count(n) + " " + what
}

// percent is a share, which is never shown as nothing or all if it is not.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	switch share := float64(part) / float64(whole) * 100; {
	case part == 0 || part == whole:
		return fmt.Sprintf("%.0f %%", share)
	case share < 0.01:
		return "< 0.01 %"
	case share > 99.99:
		return "> 99.99 %"
	case share < 1, share >= 99.95:
		return fmt.Sprintf("%.2f %%", share)
	default:
		return fmt.Sprintf("%.1f %%", share)
	}
}
