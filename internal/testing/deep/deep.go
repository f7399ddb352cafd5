// Package deep says how much of a long test runs. "make test" runs enough of it to find what breaks often, the same on each
// machine. "make deep" builds with the tag "deep": it runs all of it, with fresh seeds, and the files of tests that begin
// with "//go:build deep".
package deep

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Rapid begins with the same seed on each machine, but in deep tests. RAPID_SEED and -rapid.seed give another one.
func init() {
	if seed := flag.Lookup("rapid.seed").Value; !run && seed.String() == "0" {
		if err := seed.Set("1"); err != nil {
			panic(err)
		}
	}
}

// Run reports whether the long tests run in full.
func Run() bool { return run }

// Seed returns the n-th seed of a test: n, and in deep tests one that nobody has seen.
func Seed(n int) uint64 {
	if run {
		return rand.Uint64()
	}
	return uint64(n)
}

// Steps returns how many steps a test makes: usual in "make test", and with the race detector, which makes each take three
// times as long; all in "make deep" without it.
func Steps(usual, all int) int {
	if run && !raceDetector {
		return all
	}
	return usual
}

// Racing returns how many steps a test makes of what several goroutines do at once: few with the race detector, with
// which each takes three times as long, and many without.
func Racing(few, many int) int {
	if raceDetector {
		return few
	}
	return many
}

// Property checks a property with values that rapid draws.
func Property(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, property)
}

// Check runs a property on schedules that rapid draws, until these have made as many steps
// as [Steps] says. The property returns how many steps it made.
func Check(t *testing.T, usual, all int, property func(*rapid.T) int) {
	t.Helper()
	defer fewChecks(t)()
	schedules, made := 0, 0
	for made < Steps(usual, all) {
		rapid.Check(t, func(rt *rapid.T) {
			made += property(rt)
			schedules++
		})
	}
	t.Logf("%d steps in %d schedules", made, schedules)
}

// rapid's number of checks is a flag, which all tests that run side by side share.
var checks struct {
	sync.Mutex
	users  int
	before string
}

// fewChecks has rapid draw few schedules at a time until the result is called: its own
// number is made for properties without steps.
func fewChecks(t *testing.T) (restore func()) {
	t.Helper()
	value := flag.Lookup("rapid.checks").Value
	checks.Lock()
	defer checks.Unlock()
	if checks.users++; checks.users == 1 {
		checks.before = value.String()
		if err := value.Set("10"); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		checks.Lock()
		defer checks.Unlock()
		if checks.users--; checks.users == 0 {
			_ = value.Set(checks.before)
		}
	}
}
