package cli

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// decisionLayout is the layout of lines about decisions. They come one by one, so the widths of the
// columns are guessed before the first one. A cell that is wider than its column shifts the next
// ones, which take up the shift as soon as they have room.
type decisionLayout struct {
	*fleet
	several bool // instances; each line names one
	plans   bool
	widths  []int // of all columns but the last one
}

// The widths that a column of the layout begins with.
const (
	outcomeWidth = 8 // most outcomes
	keyWidth     = 15
	minKeyWidth  = 7
	maxKeyWidth  = 30
	leftWidth    = 7
	waitWidth    = 5
	requestWidth = 12 // at least
)

// decisionLayout asks a Caddy for its zones and their recent keys, to guess the widths of columns. It
// watches all zones, or one if it has a name.
func (f *fleet) decisionLayout(zone string, several bool) *decisionLayout {
	var zones []adminapi.Zone
	_, _ = f.asked.fetch(http.MethodGet, "zones", nil, nil, &zones) // without them, the columns are only less straight
	if zone != "" {
		zones = slices.DeleteFunc(zones, func(z adminapi.Zone) bool { return z.Name != zone })
	}
	var tops []adminapi.Top
	_, query := topQuery("", byRequests, 20)
	_, _ = f.asked.fetch(http.MethodGet, "top", query, nil, &tops)
	if zone != "" {
		tops = slices.DeleteFunc(tops, func(t adminapi.Top) bool { return t.Zone != zone })
	}
	return newDecisionLayout(f, several, zones, tops)
}

// newDecisionLayout returns a layout for decisions of these zones, and keys like these.
func newDecisionLayout(f *fleet, several bool, zones []adminapi.Zone, tops []adminapi.Top) *decisionLayout {
	l := &decisionLayout{fleet: f, several: several}
	zoneWidth, planWidth, keys := len("ZONE"), len("PLAN"), keyWidth
	for _, z := range zones {
		zoneWidth = max(zoneWidth, utf8.RuneCountInString(shellWord(z.Name)))
		l.plans = l.plans || len(z.Plans) > 0
		for _, plan := range z.Plans {
			planWidth = max(planWidth, utf8.RuneCountInString(shellWord(plan)))
		}
	}
	for _, t := range tops {
		for i := range t.Keys {
			keys = max(keys, min(maxKeyWidth, utf8.RuneCountInString(showKey(t.Keys[i].KeyText))))
		}
	}
	timeWidth := len("15:04:05")
	if f.width == 0 {
		timeWidth = len("15:04:05.000")
	}
	l.widths = []int{timeWidth}
	if several {
		caddyWidth := len(caddyColumn)
		for _, e := range f.caddys {
			caddyWidth = max(caddyWidth, len(e.address))
		}
		l.widths = append(l.widths, caddyWidth)
	}
	l.widths = append(l.widths, outcomeWidth, zoneWidth)
	if l.plans {
		l.widths = append(l.widths, planWidth)
	}
	if f.width > 0 { // LEFT and WAIT must have room, and REQUEST if no usual key is cut for it
		room := f.width - leftWidth - waitWidth - (len(l.widths)+2)*len(columnGap)
		for _, w := range l.widths {
			room -= w
		}
		keys = max(minKeyWidth, min(keys, max(room-requestWidth-len(columnGap), min(keyWidth, room))))
	}
	l.widths = append(l.widths, keys, leftWidth, waitWidth)
	return l
}

// row begins a row with the instance that it is about, if there are several.
func (l *decisionLayout) row(caddy string, cells ...string) []string {
	if !l.several {
		return cells
	}
	return append([]string{caddy}, cells...)
}

func (l *decisionLayout) header() []string {
	header := append([]string{"TIME"}, l.row(caddyColumn, "OUTCOME", "ZONE")...)
	if l.plans {
		header = append(header, "PLAN")
	}
	return append(header, keyColumn, "LEFT", "WAIT", "REQUEST")
}

// cells returns the cells of a decision of a Caddy.
func (l *decisionLayout) cells(address string, d *adminapi.Decision) []string {
	at, wide := d.Time.Local().Format("15:04:05"), l.width == 0
	if wide {
		at = d.Time.Local().Format("15:04:05.000")
	}
	cells := append([]string{at}, l.row(address, d.Outcome, shellWord(d.Zone))...)
	if l.plans {
		cells = append(cells, showPlan(d.Plan))
	}
	left, wait := "-", "-"
	if q := d.Decision; q != nil {
		left = fmt.Sprintf("%d/%d", q.Remaining, q.Quota)
		switch {
		case q.Never:
			wait = "never"
		case q.RetryAfter > 0:
			wait = formatSeconds(q.RetryAfter)
		}
	}
	request := []string{d.Method, d.Path}
	if wide {
		request = []string{d.ClientIP, d.Method, d.Host, d.Path}
	}
	text := shellWords(request)
	if d.Reason != "" {
		text += "  (" + inLine(d.Reason) + ")"
	}
	key := showKey(d.KeyText)
	if !wide {
		key = cutMiddle(key, l.widths[len(cells)])
	}
	return append(cells, key, left, wait, text)
}

// print prints a line, which is cut at the width of the terminal.
func (l *decisionLayout) print(out io.Writer, cells []string) error {
	var line strings.Builder
	at, end := 0, 0 // the width of the line, and where the column ends
	for i, cell := range cells {
		if l.width > 0 {
			if at >= l.width {
				break
			}
			cell = replay.Cut(cell, l.width-at)
		}
		at += utf8.RuneCountInString(cell)
		line.WriteString(l.colored(cell))
		if i == len(cells)-1 {
			break
		}
		end += l.widths[i]
		gap := max(0, end-at) + len(columnGap)
		line.WriteString(strings.Repeat(" ", gap))
		at, end = at+gap, end+len(columnGap)
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	return err
}
