package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestWrongConfigs: mistakes that people have made are noticed by cases that hold on the right config, or by the diff
// to it. Each golden case is the right config, the wrong one, the cases or the word diff, and what tells.
func TestWrongConfigs(t *testing.T) {
	all := golden.Cases(t, "testdata/wrong.txtar")
	if len(all) < 20 {
		t.Errorf("there are only %d wrong configs", len(all))
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			parts := strings.SplitN(c.Text, line, 4)
			if len(parts) < 3 {
				t.Fatal("there are no three lines of ten hyphens")
			}
			right, wrong := adapt(t, parts[0]), adapt(t, parts[1])
			told := ""
			if strings.TrimSpace(parts[2]) == "diff" {
				told = tellsDiff(t, right, wrong)
			} else {
				told = tellsCase(t, right, wrong, parts[2])
			}
			if told == "" {
				t.Error("nothing tells")
			}
			c.Check(t, strings.Join(parts[:3], line)+line+told)
		})
	}
}

// tellsCase returns what fails on the wrong config, and fails if anything does on the right one.
func tellsCase(t *testing.T, right, wrong []byte, text string) (told string) {
	t.Helper()
	f := parse(t, text)
	for _, r := range run(t, right, f) {
		for _, failure := range r.Failures {
			t.Errorf("the right config: line %d: want %s, got %s %q", failure.Line, failure.Expected, failure.Got, failure.State)
		}
	}
	results, err := admin.AdminAPI{}.RunCases(wrong, []*cases.File{f}, new(cases.Options))
	if err != nil {
		_, reason, _ := strings.Cut(err.Error(), "provision http.handlers.rate_limit: ")
		return "it does not load: " + reason + "\n"
	}
	for _, r := range results {
		for _, failure := range r.Failures {
			told += fmt.Sprintf("line %d: want %s, got %s\n", failure.Line, failure.Expected, failure.Got)
		}
	}
	return told
}

// tellsDiff returns how the wrong config differs from the right one.
func tellsDiff(t *testing.T, right, wrong []byte) (told string) {
	t.Helper()
	d, err := admin.AdminAPI{}.Compare(right, wrong, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, z := range d.Zones {
		for _, change := range z.Changes {
			told += "changed: " + change.Text + "\n"
		}
		for _, warning := range z.Warnings {
			told += "warning: " + warning + "\n"
		}
	}
	return told
}
