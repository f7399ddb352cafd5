//go:build deep

package lend

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestExploreManagement goes through all that can happen while operators set overrides and bans, take them back, and
// reset the key. Never is more admitted than the largest of the limits allows, and after a reset what was lent, once. A
// process that has noticed an override spends nothing that it holds.
func TestExploreManagement(t *testing.T) {
	more := deep.Steps(0, 1)
	for _, c := range []struct{ requests, faults, actions int }{{2 + more, 1, 1}, {3, 0, 1 + more}} {
		worlds, over := exploreWatched(t, nil, 1, c.requests, c.faults, c.actions)
		if len(over) > 0 {
			t.Fatal("admitted too much:", over[0])
		}
		t.Log(worlds, "worlds")
	}
}
