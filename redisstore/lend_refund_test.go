package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendRefundsBesideAsks: refunds of what is just being reported, or was spent since, come back. A log has
// nothing to take off before the report, so a refund that comes before it is lost.
func TestLendRefundsBesideAsks(t *testing.T) {
	t.Parallel()
	const cost, clients, each = 3, 12, 400
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), Timeout: 10 * time.Second})
	limit := algorithms.Limit{Events: 1_000_000, Window: time.Hour}
	rule := lendingRule(t, "z", "sliding_window_log", limit, 10*time.Millisecond)
	plain, err := store.NewRule("plain", rule.Algorithm(), limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	var wait, back sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for range each {
				checks := []store.Check{{Rule: rule, Key: "k", Cost: cost}, {Rule: plain, Key: "k", Cost: 1}}
				var d [2]algorithms.Decision
				if err := s.Take(context.Background(), checks, d[:]); err != nil || !d[0].Allowed || !d[1].Allowed {
					t.Error(err, d)
					return
				}
				back.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond) // as long as its handlers took
					s.Adjust(store.Adjustment{Check: checks[0], At: d[0].Booked(), Turn: d[0].Turn(), Delta: -cost})
				})
				time.Sleep(time.Millisecond)
			}
		})
	}
	wait.Wait()
	back.Wait()
	s.Flush()
	closed(t, s)
	patient.Until(t, "the loans are over", func() bool {
		lent, _, err := open(t, redisstore.Options{Address: server.Addr()}).Lent(context.Background(), rule, "k")
		return err == nil && lent == 0
	})
	// A loan that ends is charged at its end, so its refunds may come too early.
	if n := used(t, server, rule); n > cost*clients*each/100 && patient.Idle() {
		t.Errorf("%d of %d are used, although all was refunded", n, cost*clients*each)
	}
}
