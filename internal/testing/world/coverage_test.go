package world

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestPairsMeet: each fault is on while each operation is under way, and all promises hold. The seeds are always the same.
func TestPairsMeet(t *testing.T) {
	c := make(Coverage)
	for s := range sorts {
		if !s.trouble() {
			continue
		}
		for _, fault := range kinds(s) {
			for seed := range uint64(deep.Steps(1, pairSeeds)) {
				p := drawMeeting(seed+1, fault)
				h := Run(t, p)
				if violations := Check(h); len(violations) > 0 {
					failed(t, p, violations)
				}
				c.Add(h)
			}
		}
	}
	for _, p := range c.never() {
		t.Errorf("%s never meets %s", p.fault, p.what)
	}
	if t.Failed() {
		t.Logf("\n%s", c)
	}
}

// pairSeeds is in how many worlds a fault meets all. One of them has all pairs.
const pairSeeds = 2

// TestCoverage counts the pairs of a world.
func TestCoverage(t *testing.T) {
	c := make(Coverage)
	h := Run(t, &Plan{
		Seed: 1, Instances: 2,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: 100 * time.Millisecond, Kind: Full, Instance: -1, For: 100 * time.Millisecond},
			{At: 110 * time.Millisecond, Kind: Delay, Instance: 1, For: 100 * time.Millisecond},
			{At: 150 * time.Millisecond, Kind: Take, Cost: 1, Delta: -1, After: 200 * time.Millisecond},
			{At: 300 * time.Millisecond, Kind: Take, Instance: 1, Cost: 1},
		},
	})
	c.Add(h)
	if len(c) != 1 || c[pair{Full, "ask token_bucket"}] != 1 {
		t.Errorf("%v", map[pair]int(c))
	}
	if text := c.String(); !strings.Contains(text, "never met: Delay, ask token_bucket\n") || strings.Contains(text, "never met: Full, ask token_bucket\n") {
		t.Error(text)
	}
}
