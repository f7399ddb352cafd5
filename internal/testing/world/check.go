package world

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promises hold in every world. TRACK-RECORD.md has their names.
var promises = []struct {
	name  string
	check func(h *History)
}{
	{"never above the limit", ofKeys((*key).aboveLimit)},
	{"never more slots than there are", ofKeys((*key).tooManySlots)},
	{"with lend, never above the limit", ofKeys((*key).aboveLent)},
	{"nothing is refused without a cause", ofKeys((*key).withoutCause)},
	{"a refusal has the right wait: after it the client passes, if no other comes", ofKeys((*key).tellsWaits)},
	{"each charge and each adjustment counts once", ofKeys((*key).atRest)},
	{"only a key with an override or a ban is treated so", ofKeys((*key).withoutOperators)},
	{"an override that was set holds everywhere", ofKeys((*key).holds)},
	{"a key that is refused often enough is banned everywhere", ofKeys((*key).bans)},
	{"what a response says to have cost is charged, no more and no less", ofKeys((*key).spent)},
	{"all instances know the same networks, as operators have set them", (*History).networks},
	{"a network decides about its requests while its override holds, and no longer", (*History).ruled},
	{"no request fails without a trouble", (*History).failures},
	{"while Redis does not answer, on_store_error decides", (*History).verdicts},
	{"an instance on its own never exceeds the limit", (*History).alone},
}

// ofKeys checks each key of each zone.
func ofKeys(check func(k *key)) func(h *History) {
	return func(h *History) {
		for zone := range h.Plan.Zones {
			for number := range h.Plan.keys() {
				check(h.keyOf(zone, number))
			}
		}
	}
}

// Check returns what must not have happened, or nothing. A history is checked once.
func Check(h *History) []string {
	for _, p := range promises {
		h.promise = p.name + ": "
		p.check(h)
	}
	return h.Wrong
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
