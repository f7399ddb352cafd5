package main

import (
	"fmt"
	"io"
	"strings"
)

// table writes the comparison as Markdown: the least and the median over the seeds.
type table struct {
	out    io.Writer
	limits []rival
	least  []float64
}

func newTable(out io.Writer, limits []rival) *table {
	t := &table{out: out, limits: limits}
	head, line := "| scenario | best static |", "|---|---|"
	for _, r := range limits {
		head += " " + r.name + " |"
		line += "---|"
		t.least = append(t.least, 2)
	}
	fmt.Fprintf(out, "%s\n%s\n", head, line)
	return t
}

// row writes a scenario. If it has several groups, it also says how many requests of the first were served.
func (t *table) row(s *scenario, seen []*comparison) {
	var bests []string
	for _, c := range seen {
		bests = append(bests, fmt.Sprint(c.limit))
	}
	row := fmt.Sprintf("| %s | %s |", s.name, strings.Join(bests, " "))
	politely := fmt.Sprintf("| – served of %s, one queue %s | |", s.groups[0].name, cell(seen, func(c *comparison) float64 { return served(c.fifo) }))
	for i := range t.limits {
		least, _ := spread(each(seen, func(c *comparison) float64 { return c.share(c.runs[i]) }))
		t.least[i] = min(t.least[i], least)
		row += " " + cell(seen, func(c *comparison) float64 { return c.share(c.runs[i]) }) + " |"
		politely += " " + cell(seen, func(c *comparison) float64 { return served(c.runs[i]) }) + " |"
	}
	fmt.Fprintln(t.out, row)
	if len(s.groups) > 1 {
		fmt.Fprintln(t.out, politely)
	}
}

// worst writes the least of all scenarios.
func (t *table) worst() {
	row := "| **worst** | |"
	for _, x := range t.least {
		row += fmt.Sprintf(" %.2f |", x)
	}
	fmt.Fprintln(t.out, row)
}

func cell(seen []*comparison, value func(*comparison) float64) string {
	least, median := spread(each(seen, value))
	return fmt.Sprintf("%.2f %.2f", least, median)
}

func each(seen []*comparison, value func(*comparison) float64) (all []float64) {
	for _, c := range seen {
		all = append(all, value(c))
	}
	return all
}
