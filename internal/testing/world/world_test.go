package world

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

func TestMain(m *testing.M) {
	Alone()
	m.Run()
}

// holds runs a plan, and demands that all promises hold.
func holds(t *testing.T, p *Plan) *History {
	t.Helper()
	h := Run(t, p)
	for _, violation := range Check(h) {
		t.Error(violation)
	}
	return h
}

// TestWorlds runs worlds, in "make deep" with seeds that nobody has seen.
func TestWorlds(t *testing.T) {
	for n := range deep.Steps(90, 400) {
		p := Draw(deep.Seed(n))
		if violations := Check(Run(t, p)); len(violations) > 0 {
			failed(t, p, violations)
		}
	}
}

// allAdmitted checks a history as if nobody had been refused.
func allAdmitted(h *History) []string {
	for i := range h.Answers {
		if a := &h.Answers[i]; a.Failure == "" && !a.Decision.Allowed && a.Cost > 0 {
			a.Decision.Allowed, a.Charged = true, true
		}
	}
	return Check(h)
}

// TestCheckFindsWhatIsAboveTheLimit changes histories, which are then above the limit.
func TestCheckFindsWhatIsAboveTheLimit(t *testing.T) {
	found := 0
	for seed := range uint64(deep.Steps(10, 40)) {
		found += len(allAdmitted(Run(t, Draw(seed))))
	}
	if found == 0 {
		t.Error("nothing is above the limit when all are admitted")
	}
}

// TestPromises: TRACK-RECORD.md says all that is checked, in the same words.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("../TRACK-RECORD.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range promises {
		if !strings.Contains(string(page), "- "+p.name) {
			t.Errorf("TRACK-RECORD.md does not say: %s", p.name)
		}
	}
}
