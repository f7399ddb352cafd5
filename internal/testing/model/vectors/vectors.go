// Package vectors reads the scenarios in testdata/vectors: requests for a key, and the
// expected decisions. The Go algorithms, their Lua ports and the model all play them.
//
// A file begins with a comment that names the Go file and its Lua port. Then come lines:
//
//	algorithm <name>                      the algorithm of the whole file
//	scenario <title>                      begins a scenario, with a key never seen
//	from <RFC 3339>                       the time from which others count; otherwise
//	                                      2026-11-18T15:00:00.25Z
//	limit <option>=<value> ...            the limit from here on; it may change in between
//	<at> <cost> [<name>] -> <decision>    a request; the name is for adjustments
//	<at> renew <cost> <name>              renews the lease under that name
//	<at> adjust <delta> <name>            adjusts the charge under that name: a negative
//	                                      delta gives back, a positive one charges more
//	<at> ahead <want> [<name>] -> <units> <lasts>
//	                                      charges units ahead, of a limit with lend; the
//	                                      name is for adjustments of them
//	beyond model                          the model does not play this scenario
//
// A decision is six words: yes or no, what remains, and the waits until the cost is
// allowed (or never), until more remains, until all is back, and until the request's turn.
package vectors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// File is a file of scenarios of one algorithm.
type File struct {
	Name      string
	Algorithm string
	Scenarios []Scenario
}

// Scenario is a sequence of steps with one key.
type Scenario struct {
	Title string
	Steps []Step

	// BeyondModel reports whether the model has no rule for the scenario, such as for a rate
	// that changes under a bucket.
	BeyondModel bool
}

// Step is one line of a scenario.
type Step struct {
	Do    Do
	Limit algorithms.Limit
	At    int64 // microseconds since 1970
	Cost  int64 // for Adjust, the delta; for Ahead, how many units are wanted
	Name  string
	Taken int64  // for Adjust, when the charge was made
	Want  string // the answer, in the words of the file
	line  int
}

// Do is what a step does.
type Do int

// A request, the renewal of a lease, the adjustment of a charge, and a charge ahead.
const (
	Take Do = iota
	Renew
	Adjust
	Ahead
)

// Key is a key under test.
type Key interface {
	Take(l algorithms.Limit, now, cost int64, name string) algorithms.Decision
	Renew(l algorithms.Limit, now, cost int64, name string)
	Adjust(l algorithms.Limit, now, at, delta int64, name string)
	Ahead(l algorithms.Limit, now, want int64, name string) (units int64, lasts time.Duration)
}

// Load reads all files of a directory.
func Load(t testing.TB, dir string) (files []*File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parse(filepath.Base(path), string(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// Play plays a scenario, and reports each answer that is not the expected one.
func (s *Scenario) Play(t testing.TB, key Key) {
	t.Helper()
	for _, step := range s.Steps {
		got := ""
		switch step.Do {
		case Take:
			d := key.Take(step.Limit, step.At, step.Cost, step.Name)
			got = words(d)
			if quota := step.quota(); d.Quota != quota {
				t.Errorf("line %d: quota %d, want %d", step.line, d.Quota, quota)
			}
		case Renew:
			key.Renew(step.Limit, step.At, step.Cost, step.Name)
		case Adjust:
			key.Adjust(step.Limit, step.At, step.Taken, step.Cost, step.Name)
		case Ahead:
			units, lasts := key.Ahead(step.Limit, step.At, step.Cost, step.Name)
			got = fmt.Sprint(units, short(lasts))
		}
		if got != step.Want {
			t.Errorf("line %d:\ngot  %s\nwant %s", step.line, got, step.Want)
		}
	}
}

func (s *Step) quota() int64 {
	if s.Limit.Burst > 0 && s.Limit.Events > 0 {
		return s.Limit.Burst
	}
	return s.Limit.Events
}

// words formats a decision.
func words(d algorithms.Decision) string {
	text := map[bool]string{true: "yes ", false: "no "}[d.Allowed] + fmt.Sprint(d.Remaining)
	for _, wait := range []*time.Duration{&d.RetryAfter, &d.NextAfter, &d.ResetAfter, &d.Delay} {
		text += short(*wait)
		*wait = 0
	}
	d.Allowed, d.Quota, d.Remaining, d.At, d.Ahead = false, 0, 0, 0, 0
	if d != (algorithms.Decision{}) {
		text += fmt.Sprintf(", and %+v", d)
	}
	return text
}

// short formats a duration, behind a space: 0, never, or its units without those at the end that are 0.
func short(d time.Duration) string {
	switch d {
	case 0:
		return " 0"
	case algorithms.Never:
		return " never"
	}
	text := " " + d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Start is the time from which others count unless a scenario has another one: 250 ms after a
// full second, minute and hour.
var Start = time.Date(2026, 11, 18, 15, 0, 0, 250e6, time.UTC)
