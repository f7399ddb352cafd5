package main

import (
	"strings"
	"testing"
)

// TestTable: the best static limit is the one with the most answers, and the row has the share of it.
func TestTable(t *testing.T) {
	var text table
	run := func(limit string, useful int) *result {
		return &result{limit: limit, seconds: []int{useful, useful}, asked: 10, served: useful / 10}
	}
	text.add(&testcase{name: "pool"}, []*result{run(noLimit, 5), run("4", 60), run("8", 100), run(adaptive, 95)})
	const want = "| pool | 5, 0 % | 8: 100, 100 % | 4: 60 | 95, 90 % | **0.95** |\n"
	if got := text.results(); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	const short = "| pool | 5, 0 % | 100, 100 % | 95, 90 % |\n"
	if got := text.page(); !strings.Contains(got, short) {
		t.Errorf("got %s, want %s", got, short)
	}
}

// TestSites: each limit of each case has a site of its own.
func TestSites(t *testing.T) {
	for _, c := range cases() {
		seen := make(map[string]string)
		for _, limit := range c.limits {
			site := c.site(limit, []string{"127.0.0.1:1"})
			if other, ok := seen[site]; ok {
				t.Errorf("%s: %s is as %s", c.name, limit, other)
			}
			seen[site] = limit
		}
	}
}
