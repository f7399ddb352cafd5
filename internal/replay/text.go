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

// notUnderstood says how many lines were not understood, and what follows if they are many.
func (r *Result) notUnderstood() string {
	if r.NotUnderstood*100 <= r.Lines {
		return count(r.NotUnderstood, "line") + " not understood"
	}
	return fmt.Sprintf("WARNING: %s of %s (%s) not understood: all figures are too low", Count(r.NotUnderstood), count(r.Lines, "line"), percent(r.NotUnderstood, r.Lines))
}

// badLines says of the first lines that were not understood what they have, in at most so many characters.
func (r *Result) badLines(most int) (lines []string) {
	for _, b := range r.FirstBad {
		lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", say.Printable(b.Log), b.Line, say.Printable(b.Why), say.Cut(say.Printable(b.Text), most)))
	}
	return lines
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

const maxShown = 10

// limits writes what a zone would have done.
func (t *report) limits(z *Zone) {
	mode := ""
	if z.DryRun {
		mode = ", not fully enforced"
	}
	t.wrap("", "  ", fmt.Sprintf("ZONE %s: %s, key %s%s", say.Printable(z.Name), z.Limit, say.Printable(cmp.Or(z.Key, "none")), mode))
	row := func(what, number, rest string) { t.line("  %-28s %12s  %s", what, number, rest) }
	if why := t.notJudged(z); why != "" {
		t.wrap("  ", "    ", say.Printable(why))
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
		room := z.headroom()
		if room != "" {
			room = "  headroom " + room
		}
		row("busiest client never refused", used, say.Cut(say.Printable(b.Key), 20)+room)
	}
	t.top(z)
	t.whatIf(z)
	t.suggestion(z)
}

// notJudged says why requests were not judged in a zone; nothing if all were. If none met it, the log often is of another
// site, so its hosts are named.
func (r *Result) notJudged(z *Zone) string {
	if z.NotJudged > 0 {
		return fmt.Sprintf("not judged: %s (%s)", z.WhyNotJudged, count(z.NotJudged, "request"))
	}
	if z.Requests > 0 {
		return ""
	}
	const most = 5
	var all []string
	for _, h := range r.Hosts[:min(len(r.Hosts), most)] {
		all = append(all, fmt.Sprintf("%s (%s)", say.Cut(say.Printable(h.Name), Width), Count(h.Requests)))
	}
	if len(all) == 0 {
		return "no request met this zone"
	}
	if len(r.Hosts) > most {
		all = append(all, "and others")
	}
	return "no request met this zone. Hosts in the log: " + strings.Join(all, "; ")
}

// headroom is how much the busiest key that was never refused may use more, as "3.0 %"; empty if that is not known.
func (z *Zone) headroom() string {
	if b, most := z.Busiest, z.Most(); b != nil && most > 0 && b.Used <= most {
		return percent(most-b.Used, most)
	}
	return ""
}

// top writes the keys that are refused most.
func (t *report) top(z *Zone) {
	if len(z.Top) == 0 {
		return
	}
	t.line("\n  %-32s %10s  %8s  %s", "WHO WOULD BE REFUSED", "refused", "of sent", "first")
	for _, k := range z.Top[:min(len(z.Top), maxShown)] {
		t.line("  %-32s %10s  %8s  %s", say.Cut(say.Printable(cmp.Or(k.Key, "(no key)")), 32), Count(k.Refused), percent(k.Refused, k.Requests), t.at(k.FirstRefused))
		about := k.statuses()
		if who := k.looks(); who != "" {
			about += "; " + who
		}
		if k.Agent != "" {
			about += "; " + say.Printable(k.Agent)
		}
		t.line("    %s", say.Cut(about, Width-4))
	}
	if more := z.KeysRefused - min(len(z.Top), maxShown); more > 0 {
		t.line("    and %s more", Count(int64(more)))
	}
}

// statuses says which statuses the refused requests have in the log.
func (k *Key) statuses() string {
	all := slices.SortedFunc(maps.Keys(k.Status), func(a, b int) int { return cmp.Or(cmp.Compare(k.Status[b], k.Status[a]), cmp.Compare(a, b)) })
	total, parts := int64(0), []string{}
	for _, n := range k.Status {
		total += n
	}
	for _, status := range all[:min(len(all), 3)] {
		parts = append(parts, fmt.Sprintf("%d %s", status, percent(k.Status[status], total)))
	}
	return strings.Join(parts, ", ")
}

// looks says what makes a key look like people; nothing if it does not.
func (k *Key) looks() string {
	switch signs := strings.Join(k.Signs, ", "); {
	case signs == "":
		return ""
	case k.Shared:
		return "looks like several people: " + signs
	default:
		return "looks like a person: " + signs
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
	t.wrap("\n  SUGGESTION   ", "    ", s.title())
	for _, reason := range s.Reasons {
		t.wrap("    - ", "      ", reason)
	}
}

// title is the limit, or why there is none.
func (s *Suggestion) title() string {
	if s.Limit != "" {
		return s.Limit
	}
	return "no suggestion: " + say.Printable(s.Failure)
}

// Count formats a number with commas.
func Count(n int64) string { return humanize.Comma(n) }

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return Count(n) + " " + what
}

// percent is a share with two significant digits.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	switch share := float64(part) / float64(whole) * 100; {
	case part == 0 || part == whole:
		return fmt.Sprintf("%.0f %%", share)
	case share < 0.01:
		return "< 0.01 %"
	case share < 1:
		return fmt.Sprintf("%.2f %%", share)
	default:
		return fmt.Sprintf("%.1f %%", share)
	}
}
