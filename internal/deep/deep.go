// Package deep says how much of a long test runs. "make test" runs enough of it to find
// what breaks often; "make deep" sets DEEP=1 and runs all of it.
package deep

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// Run reports whether the long tests run in full.
func Run() bool { return os.Getenv("DEEP") == "1" }

// Steps returns how many steps a test makes: usual in "make test", all in "make deep".
func Steps(usual, all int) int {
	if Run() {
		return all
	}
	return usual
}

// Check runs a property on schedules that rapid draws, until these have made as many steps
// as [Steps] says. The property returns how many steps it made.
func Check(t *testing.T, usual, all int, property func(*rapid.T) int) {
	t.Helper()
	// rapid's own number of checks is made for properties without steps.
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set("10"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = checks.Set(before) }()
	schedules, made := 0, 0
	for made < Steps(usual, all) {
		rapid.Check(t, func(rt *rapid.T) {
			made += property(rt)
			schedules++
		})
	}
	t.Logf("%d steps in %d schedules", made, schedules)
}
