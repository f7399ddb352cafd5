package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// TestMutantsApply: each mutant changes what the code is today, and each test that should find one is there.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	all, err := load(filepath.Join(root, mutants), "")
	if err != nil || len(all) < 25 {
		t.Fatalf("%d mutants: %v", len(all), err)
	}
	for _, m := range all {
		if _, err := m.apply(root); err != nil {
			t.Error(err)
		}
		files, _ := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
		var tests strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
		for _, test := range strings.Split(m.tests, "|") {
			if !strings.Contains(tests.String(), "\nfunc "+test+"(") {
				t.Errorf("%s: there is no %s in %s", m.name, test, m.pkg)
			}
		}
	}
}

// TestMutantIsMissed: a mutant that changes nothing is not found, nor is one that does not compile.
func TestMutantIsMissed(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"-// Package lua embeds":                  "come 0 times",
		"-package lua\n+package lua // as before": "passes",
		"-package lua\n+package":                  "did not run",
	} {
		m, err := parse("found by TestNone in ./lua\nin lua/lua.go\n" + change + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.run(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}
