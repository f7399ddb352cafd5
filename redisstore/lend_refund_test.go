//go:build deep

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

// TestLendLateRefunds: what is refunded after it was reported comes back too.
func TestLendLateRefunds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, algorithm := range []string{"fixed_window", "sliding_window_log"} {
		s := open(t, redisstore.Options{Address: server.Addr()})
		rule := lendingRule(t, "z", algorithm, algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 100*time.Millisecond)
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		var made [30]algorithms.Decision
		for i := range made {
			if err := s.Take(context.Background(), []store.Check{c}, made[i:i+1]); err != nil || !made[i].Allowed {
				t.Fatal(err, made[i])
			}
		}
		patient.Until(t, "all is reported", func() bool {
			lent, _, err := s.Lent(context.Background(), rule, "k")
			return err == nil && lent == 0
		})
		for _, d := range made {
			s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -1})
		}
		s.Flush()
		if n := used(t, server, rule); n != 0 {
			t.Errorf("%s: %d of 30 used, although all were refunded", algorithm, n)
		}
	}
}

// TestLendRefundOfAnUnbegunAsk: an ask that Redis did not begin, because it was a replica without its master, has told nothing.
// What was spent before it is given back at once, where a log of Redis has nothing to take off.
func TestLendRefundOfAnUnbegunAsk(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := redistest.Start(t, redistest.WithArgs("--replica-serve-stale-data", "no"))
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "sliding_window_log", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second)
	c := store.Check{Rule: rule, Key: "k", Cost: 1}
	passed := 0
	take := func() (d algorithms.Decision) {
		t.Helper()
		d, err := decideOne(s, c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		passed++
		return d
	}
	patient.Until(t, "a loan", func() bool {
		take()
		return s.Stats().Lent["z"] > 10
	})
	time.Sleep(2 * time.Millisecond) // later than the answer that lent it
	spent := take()
	if err := server.Admin().ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	large := c
	large.Cost = 500 // more than is held
	if d, err := decideOne(s, large); store.Failure(err) != store.FailureLoading {
		t.Fatalf("%+v, %v, want a replica without its master", d, err)
	}
	s.Adjust(store.Adjustment{Check: c, At: spent.Booked(), Turn: spent.Turn(), Delta: -1})
	if err := server.Admin().ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	patient.Until(t, "Redis to answer", func() bool {
		_, err := decideOne(s, store.Check{Rule: rule, Key: "another", Cost: 1})
		return err == nil
	})
	closed(t, s)
	if n := used(t, server, rule); n != int64(passed-1) {
		t.Errorf("%d are used, %d passed, of which one was refunded", n, passed)
	}
}
