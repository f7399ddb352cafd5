package world

import (
	"strings"
	"testing"
	"time"
)

// patience is how long a plan is shrunk, if nothing else is said.
const patience = 20 * time.Second

// failed says what a world has broken. It cuts the plan to what still does, and shows what happens then, and the plan as
// tests in found_test.go have it.
func failed(t *testing.T, p *Plan, violations []string) {
	t.Errorf("seed %d:\n%s", p.Seed, strings.Join(violations, "\n"))
	least := Shrink(p, func(p *Plan) []string { return Check(Run(t, p)) }, patience)
	h := Run(t, least)
	t.Logf("seed %d, in %d events of %d:\n%s%s\nholds(t, &%s)", p.Seed, len(least.Events), len(p.Events), h, strings.Join(Check(h), "\n"), least.Source())
}
