package main

import (
	"fmt"
	"strings"
)

// table is the comparison as Markdown.
type table struct {
	about       string
	full, short []string // rows
}

// add adds a case: useful answers in a second, and how many percent of the requests of polite keys were served.
func (t *table) add(c *testcase, runs []*result) {
	best := bestStatic(runs)
	cell := func(r *result) string {
		return fmt.Sprintf("%.0f, %.0f %%", r.perSecond(), 100*r.politely())
	}
	row := map[string]*result{}
	var others []string
	for _, r := range runs {
		row[r.limit] = r
		if r != best && isStatic(r.limit) {
			others = append(others, fmt.Sprintf("%s: %.0f", r.limit, r.perSecond()))
		}
	}
	add := func(name string, r *result) {
		none, static, found := cell(row[noLimit]), cell(best), cell(r)
		if !c.alone { // what a processor can do depends on what else the machine does
			t.short = append(t.short, fmt.Sprintf("| %s | %s | %s | %s |", name, none, static, found))
		}
		t.full = append(t.full, fmt.Sprintf("| %s | %s | %s: %s | %s | %s | **%.2f** |", name, none, best.limit, static,
			strings.Join(others, ", "), found, float64(r.useful())/float64(best.useful())))
	}
	add(c.name, row[adaptive])
	if r := row[parted]; r != nil {
		add("the same, one each", r)
	}
}

// page is the table of docs/overload.md.
func (t *table) page() string {
	return "| answers/s, polite served | no limit | best static | adaptive |\n|---|---|---|---|\n" + strings.Join(t.short, "\n") + "\n"
}

// results is the table of bench/overload/RESULTS.md.
func (t *table) results() string {
	return "| useful answers/s, polite served | no limit | best static limit | other static limits | adaptive | share of the best |\n|---|---|---|---|---|---|\n" +
		strings.Join(t.full, "\n") + "\n\nMeasured with " + t.about + ", which other programs used too.\n"
}
