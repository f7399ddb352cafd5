package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLateCostOnItsWay: a late cost that Redis carries out only when it would not count any more, as after a hang, does
// not use up what came later. One that is in time counts, or that became known later.
func TestLateCostOnItsWay(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, setNow := openWithClock(t, server)
	now, lua := storetest.Start, newRedisSide(s) // a quarter of a second into a minute
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue
		}
		for _, rule := range storetest.Kinds(t, name, 10, time.Minute) {
			for _, c := range []struct {
				known, arrives time.Duration
				counts         bool
			}{
				{time.Second, 2 * time.Second, true},
				{time.Second, 26 * time.Hour, false},
				{25 * time.Hour, 26 * time.Hour, rule.Limit().Calendar != 0},
				{26 * time.Hour, 26 * time.Hour, true},
				{27 * time.Hour, 26 * time.Hour, true}, // it came faster than it was measured
				{0, 26 * time.Hour, true},              // not known
			} {
				setNow(now)
				check := store.Check{Rule: rule, Key: "client", Cost: 1}
				d := lua.take(t, check)
				now += c.arrives.Microseconds()
				setNow(now)
				check.Cost = 0
				before := lua.take(t, check).Remaining
				late := store.Adjustment{Check: check, At: d.Booked(), Turn: d.Turn(), Delta: 5, Known: c.known}
				lua.adjust(t, late)
				if counted := before-lua.take(t, check).Remaining == 5; counted != c.counts {
					t.Errorf("%s: known after %v, carried out after %v: counted: %v", rule.ID(), c.known, c.arrives, counted)
				}
				if err := s.Reset(t.Context(), rule, "client"); err != nil {
					t.Fatal(err)
				}
				now += (48*time.Hour - c.arrives).Microseconds()
			}
		}
	}
}
