// Package deep says how much of a long test runs. "make test" runs enough of it to find what breaks often, the same on each
// machine. "make deep" builds with the tag "deep": it runs all of it, with fresh seeds, and the files of tests that begin
// with "//go:build deep".
package deep

import (
	"flag"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Rapid begins with the same seed on each machine, but in deep tests. With the race detector it makes fewer checks.
// RAPID_SEED, RAPID_CHECKS and their flags say otherwise.
func init() {
	set := func(name, usual, value string) {
		if f := flag.Lookup("rapid." + name).Value; f.String() == usual {
			_ = f.Set(value)
		}
	}
	if !run {
		set("seed", "0", "1")
	}
	if raceDetector {
		set("checks", "100", "30")
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

// Property checks a property with values that rapid draws: a hundred times, and in "make deep" as many hundred times as the number says.
func Property(t *testing.T, hundreds int, property func(*rapid.T)) {
	t.Helper()
	for range Steps(1, hundreds) {
		rapid.Check(t, property)
	}
}
