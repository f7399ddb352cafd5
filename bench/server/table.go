package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// columns are the cells of a row, of text tables and of Markdown.
var columns = []string{
	"case", "bare, requests/s", "limited", "ratio",
	"p50 bare", "p50 limited", "p50 added", "p99 limited", "memory added", "meant to be", "",
}

func (o outcome) row() []string {
	wanted, kept := o.verdict()
	return []string{
		o.scenario.name, fmt.Sprintf("%.0f", o.bare), fmt.Sprintf("%.0f", o.with), fmt.Sprintf("%.2f%s", rig.Median(o.ratios), rig.Spread("%.2f", o.ratios)),
		short(o.bare50), short(o.with50), short(o.added), short(o.with99), fmt.Sprintf("%.0f MB", o.addedMemory/1e6), wanted, kept,
	}
}

func short(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// verdict says what the scenario asks for, and whether it was reached.
func (o outcome) verdict() (wanted, kept string) {
	var all []string
	ok := true
	if want := o.scenario.ratio; want > 0 {
		all, ok = append(all, fmt.Sprintf("ratio %.2f", want)), ok && rig.Median(o.ratios) >= want
	}
	if want := o.scenario.memory; want > 0 {
		all, ok = append(all, fmt.Sprintf("up to %.0f MB", want/1e6)), ok && o.addedMemory <= want
	}
	if want := o.scenario.added; want > 0 {
		all, ok = append(all, "added p50 below "+short(want)), ok && o.added < want
	}
	switch {
	case len(all) == 0:
		return "", ""
	case ok:
		return strings.Join(all, ", "), "yes"
	}
	return strings.Join(all, ", "), "short"
}

func writeText(out io.Writer, about string, outcomes []outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n\n%s\n", about, strings.Join(columns, "\t"))
	for _, o := range outcomes {
		fmt.Fprintln(w, strings.Join(o.row(), "\t"))
	}
	return w.Flush()
}

func markdown(about string, outcomes []outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| %s |\n|---%s|\n", about, strings.Join(columns, " | "), strings.Repeat("|---:", len(columns)-3)+"|---|---")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(o.row(), " | "))
	}
	return b.String()
}
