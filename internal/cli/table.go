package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
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
	return d.String()
}

// table prints rows of cells in columns.
func (e *endpoint) table(rows [][]string) error {
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
