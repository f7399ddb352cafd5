package world

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promised is something that holds in every world. Its name is in TRACK-RECORD.md.
type promised struct {
	name   string
	broken func(h *History) []string // says where it does not hold
}

var promises []promised

// promise adds a promise.
func promise(name string, broken func(h *History) []string) string {
	promises = append(promises, promised{name, broken})
	return name
}

// promiseOfKeys adds a promise that holds for each key of each zone.
func promiseOfKeys(name string, broken func(k *key) []string) string {
	return promise(name, func(h *History) (violations []string) {
		for zone := range h.Plan.Zones {
			for number := range h.Plan.keys() {
				violations = append(violations, broken(h.key(zone, number))...)
			}
		}
		return violations
	})
}

// Check returns what must not have happened, or nothing.
func Check(h *History) (violations []string) {
	violations = slices.Clone(h.Wrong)
	for _, p := range promises {
		for _, v := range p.broken(h) {
			violations = append(violations, p.name+": "+v)
		}
	}
	return violations
}

// Shrink cuts a plan whose world breaks something to fewer events that break the same promise. A plan is broken if broken returns
// violations. If nothing is broken, the plan is returned as it is.
func Shrink(p *Plan, broken func(*Plan) []string) *Plan {
	violations := broken(p)
	for i := len(p.Events) - 1; i >= 0 && len(violations) > 0; i-- {
		c := *p
		c.Events = slices.Delete(slices.Clone(p.Events), i, i+1)
		if slices.ContainsFunc(broken(&c), func(v string) bool { return sameness(v) == sameness(violations[0]) }) {
			p = &c
		}
	}
	return p
}

var numbers = regexp.MustCompile(`\d+(\.\d+)?((ns|µs|ms|s|m|h)\d*)*`)

// sameness is what violations have in common that are of the same kind.
func sameness(violation string) string { return numbers.ReplaceAllString(violation, "N") }

// failed says what a world has broken. It cuts the plan to what still does, and shows what happens then, and the plan as
// tests in found_test.go have it.
func failed(t *testing.T, p *Plan, violations []string) {
	t.Errorf("seed %d:\n%s", p.Seed, strings.Join(violations, "\n"))
	least := Shrink(p, func(p *Plan) []string { return Check(Run(t, p)) })
	h := Run(t, least)
	t.Logf("seed %d, in %d events of %d:\n%s%s\nholds(t, &%s)", p.Seed, len(least.Events), len(p.Events), h, strings.Join(Check(h), "\n"), least.Source())
}
