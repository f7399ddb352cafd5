//go:build deep

package lend

import (
	"strings"
	"testing"
)

// TestTransitions: in all that the explorers go through, a borrower changes its state only as the table says, what
// always holds does, and every line of the table happens.
func TestTransitions(t *testing.T) {
	w := &watcher{seen: make(map[string]bool)}
	exploreWatched(t, w, 1, 4, 1, 0)
	exploreWatched(t, w, 1, 2, 0, 1)
	exploreLateOrders(t, w, 6)
	scarceOrders(t, w)
	missing := 0
	for event, changes := range transitions {
		for change := range strings.FieldsSeq(changes) {
			if !w.seen[event+": "+change] {
				t.Errorf("never seen: %s: %s", event, change)
				missing++
			}
		}
	}
	t.Logf("%d kinds of changes, %d missing", len(w.seen), missing)
}
