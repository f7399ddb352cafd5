package slots

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLostReturnsAreForgotten: of slots that never arrive, nothing is kept for long.
func TestLostReturnsAreForgotten(t *testing.T) {
	t.Parallel()
	table := newSlotTable(t)
	leave := func(key int, now time.Duration) {
		c := *table.check("")
		c.Key = strconv.Itoa(key)
		table.leave([]store.Adjustment{{Check: c}}, now)
	}
	for key := range 1000 {
		leave(key, 0)
	}
	leave(1000, lost)
	if n := len(table.returning); n != 1001 {
		t.Errorf("%d keys have slots on their way, want 1001", n)
	}
	if leave(1001, lost+1); len(table.returning) != 2 {
		t.Errorf("%d keys have slots on their way, want 2", len(table.returning))
	}
}
