package world

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// patience is how long a plan is shrunk, if nothing else is said.
const patience = 20 * time.Second

// Report cuts the plan of a seed that has broken something, and returns what happens then as a story, and as a test.
func Report(t *testing.T, p *Plan) string {
	least := Shrink(p, func(p *Plan) []string { return Check(Run(t, p)) }, patience)
	h := Run(t, least)
	return fmt.Sprintf("seed %d, in %d events of %d:\n%s\n%s", p.Seed, len(least.Events), len(p.Events), h.Story(Check(h)), least.Source("TestFound"+fmt.Sprint(p.Seed)))
}

// failed says what a world has broken.
func failed(t *testing.T, p *Plan, violations []string) {
	t.Errorf("seed %d:\n%s", p.Seed, strings.Join(violations, "\n"))
	t.Log(Report(t, p))
}
