package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

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

// table prints rows of cells in columns, below a header, and cuts cells if the terminal is too narrow
// for them.
func (e *endpoint) table(rows [][]string) error {
	return e.columns(rows, fitted(widths(rows), e.width))
}

// details prints names and values, which are never cut.
func (e *endpoint) details(rows [][]string) error { return e.columns(rows, widths(rows)) }

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

// fitted makes columns narrower until they fit, the widest first. The last column, which has the keys,
// is cut only if the others are narrow. With a width of 0, everything fits.
func fitted(columns []int, width int) []int {
	excess := -width
	for _, w := range columns {
		excess += w + len(columnGap)
	}
	excess -= len(columnGap)
	if width == 0 || len(columns) == 0 {
		return columns
	}
	last := len(columns) - 1
	for _, cut := range [][]int{columns[:last], columns[last:]} {
		for ; excess > 0 && len(cut) > 0; excess-- {
			i := slices.Index(cut, slices.Max(cut))
			if cut[i] <= narrowest {
				break
			}
			cut[i]--
		}
	}
	return columns
}

func (e *endpoint) columns(rows [][]string, width []int) error {
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			n := utf8.RuneCountInString(cell)
			if n > width[i] {
				cell, n = string([]rune(cell)[:width[i]-1])+"\u2026", width[i]
			}
			b.WriteString(e.coloured(cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-n) + columnGap)
			}
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(e.out, b.String())
	return err
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
	"passes": green, "yes": green, "passes, dry run": yellow, "half-open": yellow,
	adminapi.LevelOK: green, adminapi.LevelWarn: yellow, adminapi.LevelFail: red,
}

func (e *endpoint) coloured(cell string) string {
	if color := colors[cell]; e.color && color != "" {
		return color + cell + noColor
	}
	return cell
}
