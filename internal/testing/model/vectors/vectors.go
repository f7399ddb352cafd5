// Package vectors reads the scenarios in testdata/vectors: requests for a key, and the
// expected decisions. The Go algorithms and the model play them.
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

// Scenario is a sequence of requests for one key.
type Scenario struct {
	Title string

	// BeyondModel reports whether the model has no rule for the scenario, such as for a rate
	// that changes under a bucket.
	BeyondModel bool

	lines []line
}

type line struct {
	number int
	text   string
}

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
		f := &File{Name: filepath.Base(path)}
		files = append(files, f)
		for i, text := range strings.Split(string(text), "\n") {
			word, rest, _ := strings.Cut(text, " ")
			last := len(f.Scenarios) - 1
			switch {
			case word == "", word == "#":
			case word == "algorithm":
				f.Algorithm = rest
			case word == "scenario":
				f.Scenarios = append(f.Scenarios, Scenario{Title: rest})
			case last < 0:
				t.Fatalf("%s:%d: before the first scenario: %q", f.Name, i+1, text)
			case word == "beyond":
				f.Scenarios[last].BeyondModel = true
			default:
				f.Scenarios[last].lines = append(f.Scenarios[last].lines, line{i + 1, text})
			}
		}
		if len(f.Scenarios) == 0 {
			t.Fatalf("%s: no scenario", f.Name)
		}
	}
	return files
}

// words formats a decision under a limit.
func words(d algorithms.Decision, l algorithms.Limit) string {
	text := map[bool]string{true: "yes ", false: "no "}[d.Allowed] + fmt.Sprint(d.Remaining)
	for _, wait := range []*time.Duration{&d.RetryAfter, &d.NextAfter, &d.ResetAfter, &d.Delay} {
		text += short(*wait)
		*wait = 0
	}
	quota := l.Events
	if l.Burst > 0 && l.Events > 0 {
		quota = l.Burst
	}
	if d.Quota == quota {
		d.Quota = 0
	}
	d.Allowed, d.Remaining, d.At, d.Ahead = false, 0, 0, 0
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
