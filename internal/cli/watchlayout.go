package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// decisionLayout is the layout of lines about decisions. They come one by one, so the columns have the widths of what is
// usual. A cell that is wider than its column shifts the next ones, which take up the shift as soon as they have room.
type decisionLayout struct {
	*screen
	several bool  // instances; each line names one
	widths  []int // of all columns but the last one
}

// The widths of columns.
const (
	outcomeWidth = 8 // most outcomes
	zoneWidth    = 9
	keyWidth     = 15 // an IPv4 address
	wideKeyWidth = 24 // in a terminal with room
	leftWidth    = 7
	waitWidth    = 5
	caddyWidth   = 16
	roomy        = 100 // columns of a terminal
)

// newDecisionLayout returns a layout for decisions.
func newDecisionLayout(s *screen, several bool) *decisionLayout {
	l := &decisionLayout{screen: s, several: several, widths: []int{len("15:04:05")}}
	key := keyWidth
	switch {
	case s.width == 0:
		l.widths[0] = len("15:04:05.000")
	case s.width >= roomy:
		key = wideKeyWidth
	}
	if several {
		l.widths = append(l.widths, caddyWidth)
	}
	l.widths = append(l.widths, outcomeWidth, zoneWidth, key, leftWidth, waitWidth)
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
	return append(header, keyColumn, "LEFT", "WAIT", "REQUEST")
}

// cells returns the cells of a decision of a Caddy.
func (l *decisionLayout) cells(address string, d *adminapi.Decision) []string {
	at, wide := d.Time.Local().Format("15:04:05"), l.width == 0
	if wide {
		at = d.Time.Local().Format("15:04:05.000")
	}
	zone := shell.Word(d.Zone)
	if d.Plan != "" {
		zone += inParentheses("plan " + shell.Word(d.Plan))
	}
	cells := append([]string{at}, l.row(address, d.Outcome, zone)...)
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
	text := shell.Words(request)
	if d.Reason != "" {
		text += "  (" + inLine(d.Reason) + ")"
	}
	key := shell.ShowKey(d.KeyText)
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
