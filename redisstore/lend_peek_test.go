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

// TestLendPeek: a peek answers what the next request would be answered: by what this process holds, which is
// used for others.
func TestLendPeek(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder, other := open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	take := func(s *redisstore.Store, c store.Check) algorithms.Decision {
		t.Helper()
		var d [1]algorithms.Decision
		if err := s.Take(t.Context(), []store.Check{c}, d[:]); err != nil {
			t.Fatal(err)
		}
		return d[0]
	}
	parts := store.Check{Rule: lendingRule(t, "parts", "sliding_window_log", algorithms.Limit{Events: 1000, Window: time.Hour}, 10*time.Second), Key: "k", Cost: 1}
	for range 50 {
		take(holder, parts)
	}
	rest := parts
	for rest.Cost = 64; rest.Cost > 0; { // all that is free
		if !take(other, rest).Allowed {
			rest.Cost /= 2
		}
	}
	peek, foreseen := parts, 0
	for peek.Peek = true; take(holder, peek).Allowed; foreseen++ {
		if d := take(other, peek); d.Allowed {
			t.Fatalf("another process sees %+v", d)
		}
		if d := take(holder, parts); !d.Allowed {
			t.Fatalf("request %d: %+v", foreseen, d)
		}
	}
	if d := take(holder, parts); d.Allowed || foreseen == 0 {
		t.Fatalf("after %d requests: %+v", foreseen, d)
	}

	slot := store.Check{Rule: slotsRule(t, 20, time.Minute, 10*time.Second), Key: "k", Cost: 1}
	for range 20 { // until the key comes often, and its slot is kept
		slot.LeaseID = store.NewLeaseID()
		d := take(holder, slot)
		if !d.Allowed {
			break
		}
		holder.Adjust(store.Adjustment{Check: slot, At: d.Booked(), Turn: d.Turn(), Delta: -1})
	}
	patient.Until(t, "the slots to be given back", func() bool { holder.Flush(); return holder.Waiting() == 0 })
	taken := slot
	taken.LeaseID = store.NewLeaseID()
	for take(other, taken).Allowed { // what is free
		taken.LeaseID = store.NewLeaseID()
	}
	_, kept, err := holder.Lent(t.Context(), slot.Rule, slot.Key)
	if err != nil || kept != 1 {
		t.Fatal(kept, err)
	}
	slot.Peek, slot.LeaseID = true, ""
	if d := take(holder, slot); !d.Allowed || d.RetryAfter != 0 {
		t.Errorf("a slot is kept: %+v", d)
	}
	if d := take(other, slot); d.Allowed {
		t.Errorf("another process: %+v", d)
	}
}
