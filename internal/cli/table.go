package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

func orDash(text string) string { return cmp.Or(text, "-") }

// formatSeconds formats seconds with a precision that people can use.
func formatSeconds(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(time.Second / 10)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond / 10)
	}
	return duration.Format(d)
}

const (
	columnGap = "  "

	// narrowest is the width to which a column may be cut.
	narrowest = 10
)

// shrinks are the headers of columns that a narrow terminal cuts. Names, numbers and states stay whole.
var shrinks = append([]string{"LIMIT", "STORE", "OVERRIDE", "VERSION"}, inMiddle...)

// inMiddle are the headers of columns that are cut in the middle, because their texts often begin alike.
var inMiddle = []string{keyColumn, instanceColumn, byColumn}

// keyColumn, instanceColumn and byColumn are the headers of keys, of instances, and of who has changed something.
const keyColumn, instanceColumn, byColumn = "KEY", "INSTANCE", "BY"

// table prints rows of cells in columns, below a header, and cuts cells if the terminal is too narrow
// for them.
func (e *screen) table(rows [][]string) error {
	return e.columns(rows, e.fitted(rows))
}

// only removes the columns for which this says no, by their headers.
func only(columns map[string]bool, rows [][]string) [][]string {
	header := rows[0]
	for i, row := range rows {
		rows[i] = nil
		for j, cell := range row {
			if shown, optional := columns[header[j]]; shown || !optional {
				rows[i] = append(rows[i], cell)
			}
		}
	}
	return rows
}

// fits reports whether the terminal is wide enough for a table.
func (e *screen) fits(rows [][]string) bool {
	return slices.Equal(e.fitted(rows), widths(rows))
}

// canFit reports whether the terminal is wide enough for a table whose cells are cut.
func (e *screen) canFit(rows [][]string) bool {
	columns := e.fitted(rows)
	needed := len(columnGap) * (len(columns) - 1)
	for _, w := range columns {
		needed += w
	}
	return e.width == 0 || needed <= e.width
}

// details prints names and values, which are never cut.
func (e *screen) details(rows [][]string) error { return e.columns(rows, widths(rows)) }

// widths returns the width of each column.
func widths(rows [][]string) (width []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	return width
}

// fitted returns the widths of columns. Those that may be cut become narrower until all fit, the widest
// first. With a width of 0, everything fits.
func (e *screen) fitted(rows [][]string) []int {
	columns := widths(rows)
	excess := len(columnGap)*(len(columns)-1) - e.width
	for _, w := range columns {
		excess += w
	}
	for ; e.width > 0 && excess > 0; excess-- {
		widest := -1
		for i, header := range rows[0] {
			if columns[i] > narrowest && slices.Contains(shrinks, header) && (widest < 0 || columns[i] > columns[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		columns[widest]--
	}
	return columns
}

func (e *screen) columns(rows [][]string, width []int) error {
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if slices.Contains(inMiddle, rows[0][i]) {
				cell = cutMiddle(cell, width[i])
			}
			cell = replay.Cut(cell, width[i])
			n := utf8.RuneCountInString(cell)
			b.WriteString(e.colored(cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-n) + columnGap)
			}
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(e.out, b.String())
	return err
}

// cutMiddle shortens a text that is wider than this, and leaves both ends.
func cutMiddle(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n <= width {
		return text
	}
	left := width / 2
	return string([]rune(text)[:left]) + "\u2026" + string([]rune(text)[n-(width-left-1):])
}

// The escape sequences of terminals.
const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	noColor = "\x1b[0m"
)

// colors are the colors of cells that are a state.
var colors = map[string]string{
	outcome.Names[outcome.Limited]: red, outcome.Names[outcome.Banned]: red, outcome.Names[outcome.Rejected]: red, "no": red, "open": red,
	outcome.Names[outcome.Allowed]: green, "yes": green, "dry run": yellow, outcome.Names[outcome.DryRun]: yellow, "half-open": yellow,
	adminapi.LevelOK: green, adminapi.LevelWarn: yellow, adminapi.LevelFail: red,
}

func (e *screen) colored(cell string) string {
	if color := colors[cell]; e.color && color != "" {
		return color + cell + noColor
	}
	return cell
}
