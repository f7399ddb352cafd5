// Package deep says how much of a long test runs. "make test" runs enough of it to find
// what breaks often; "make deep" sets DEEP=1 and runs all of it.
package deep

import (
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Run reports whether the long tests run in full.
func Run() bool { return os.Getenv("DEEP") == "1" }

// OneGoroutine skips a test with one goroutine in a build with the race detector, which finds nothing there and takes
// five times as long. "make unit" runs the packages of such tests without it too.
func OneGoroutine(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine has no races: make unit runs this test without the race detector")
	}
}

// InTurn skips a test that waits for each answer before it asks again, in a build with the race detector, with which it
// takes three times as long. Other tests make the same requests at once there. "make unit" runs tests in turn without the
// race detector, and "make deep" also with it: it sets RACES=all.
func InTurn(t *testing.T) {
	t.Helper()
	if raceDetector && os.Getenv("RACES") != "all" {
		t.Skip("no two requests at once: make unit runs this test without the race detector")
	}
}

// Steps returns how many steps a test makes: usual in "make test", all in "make deep".
func Steps(usual, all int) int {
	if Run() {
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
