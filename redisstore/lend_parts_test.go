//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendRefundBehindOthers: a refund comes back in full, although smaller charges of others came between
// the request and its report.
func TestLendRefundBehindOthers(t *testing.T) {
	t.Parallel()
	const others, cost = 6, 5
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "sliding_window_log", algorithms.Limit{Events: 1000, Window: 2 * time.Minute}, 500*time.Millisecond)
	c := store.Check{Rule: rule, Key: "k", Cost: cost}
	want := int64(0)
	take := func(s *redisstore.Store, c store.Check) algorithms.Decision {
		d, err := decideOne(s, c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		want += c.Cost
		return d
	}
	patient.Until(t, "a loan", func() bool { return take(s, c).Allowed && s.Stats().Lent["z"] > cost })
	made := take(s, c)
	for range others {
		other := open(t, redisstore.Options{Address: server.Addr()}) // to which the key comes too rarely to borrow
		take(other, store.Check{Rule: rule, Key: "k", Cost: 1})
		closed(t, other)
	}
	patient.Until(t, "the report", func() bool { return used(t, server, rule) == want })
	s.Adjust(store.Adjustment{Check: c, At: made.Booked(), Turn: made.Turn(), Delta: -cost})
	s.Flush()
	if n := used(t, server, rule); n != want-cost {
		t.Errorf("%d used after the refund, want %d", n, want-cost)
	}
}
