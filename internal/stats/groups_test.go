package stats_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// TestGroupsOnDemand: groups are counted from the first look on, by the placeholder of the last look, and until nobody has looked
// for long.
func TestGroupsOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g stats.Groups
		requests := func(by string) uint64 {
			t.Helper()
			top, _, _ := g.Look(by).Top(0.01)
			if len(top) != 1 {
				return 0
			}
			return top[0].Requests.AtLeast
		}
		g.Add("a", "bot", "key", outcome.Allowed)
		if g.Counts("a") || requests("a") != 0 {
			t.Error("it counts before somebody looks")
		}
		for range 3 {
			g.Add("a", "bot", "key", outcome.Allowed)
			g.Add("b", "bot", "key", outcome.Allowed) // of a request that still has the config before
		}
		if n := requests("a"); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		if n := requests("b"); n != 0 || g.Counts("a") || !g.Counts("b") {
			t.Errorf("%d requests by another placeholder", n)
		}
		for range 3 { // looks go on
			time.Sleep(3 * stats.TopSpan)
			requests("b")
		}
		if !g.Counts("b") {
			t.Error("it does not count although somebody looks")
		}
		time.Sleep(6 * stats.TopSpan)
		if g.Counts("b") {
			t.Error("it counts although nobody has looked for half an hour")
		}
	})
}
