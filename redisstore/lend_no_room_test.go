//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendNoRoom: a process more than can have loans of a key still charges requests in all zones,
// whether they lend or not.
func TestLendNoRoom(t *testing.T) {
	t.Parallel()
	const others, roomFor, passing = lend.MaxLoans - 2, 2, 5
	server := redistest.Start(t)
	limit := algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}
	lent := lendingRule(t, "lent", "fixed_window", limit, 10*time.Second)
	plain, err := store.NewRule("plain", lent.Algorithm(), algorithms.Limit{Events: passing, Window: 1000 * time.Hour}, 0)
	if err != nil {
		t.Fatal(err)
	}
	lender := open(t, redisstore.Options{Address: server.Addr()})
	for i := range others {
		lender.Borrow(t, store.Check{Rule: lent, Key: "k", Cost: 1}, uint64(i+1))
	}
	for i := range passing + 2 {
		s := open(t, redisstore.Options{Address: server.Addr()})
		var d [2]algorithms.Decision
		if err := s.Take(context.Background(), []store.Check{{Rule: lent, Key: "k", Cost: 1}, {Rule: plain, Key: "k", Cost: 1}}, d[:]); err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		if pass := i < passing; d[1].Allowed != pass || !d[0].Allowed {
			t.Fatalf("process %d: %+v", i, d)
		}
		s.Flush()
		if _, loans, err := lender.Lent(context.Background(), lent, "k"); err != nil || loans != int64(others+min(i+1, roomFor)) {
			t.Fatalf("process %d: %d loans, %v", i, loans, err)
		}
	}
	for _, c := range []struct {
		rule *store.Rule
		want int64
	}{{lent, others + passing}, {plain, passing}} {
		if n := usedOf(t, lender, c.rule, "k"); n != c.want {
			t.Errorf("zone %s: %d used, want %d", c.rule.Zone(), n, c.want)
		}
	}
}
