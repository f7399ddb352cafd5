//go:build deep

package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// decideOne makes one request of one check.
func decideOne(s *redisstore.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	return d[0], err
}

// TestLendLostAsk: requests that wait for what another one asks are decided, although that ask is lost.
func TestLendLostAsk(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 2 * time.Second})
	s.Silence()
	c := store.Check{Rule: lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second), Key: "k", Cost: 1}
	for range 3 { // so that Redis knows the script
		if _, err := decideOne(s, store.Check{Rule: c.Rule, Key: "other", Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // not often yet
		if d, err := decideOne(s, c); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	var lost atomic.Bool
	proxy.Inject(func(command string) faultproxy.Fault {
		if command == "evalsha" && lost.CompareAndSwap(false, true) {
			return faultproxy.SwallowReply
		}
		return faultproxy.None
	})
	first := make(chan error, 1)
	go func() {
		_, err := decideOne(s, c)
		first <- err
	}()
	patient.Until(t, "the ask is lost", func() bool { return proxy.Count(faultproxy.SwallowReply) == 1 })
	const waiters = 8
	others := make(chan error, waiters)
	for range waiters {
		go func() {
			d, err := decideOne(s, c)
			if err == nil && !d.Allowed {
				t.Errorf("refused: %+v", d)
			}
			others <- err
		}()
	}
	for range waiters {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if err := <-first; err == nil {
		t.Error("the ask was not lost")
	}
	_ = s.Close() // the connection on which the reply was lost is broken
	if n := used(t, server, c.Rule); n != 2+1+waiters {
		t.Errorf("%d used, want %d", n, 2+1+waiters)
	}
}

// TestLendAdjustmentsShareCalls: adjustments of keys that lend are made in a few calls.
func TestLendAdjustmentsShareCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	s.Silence()
	c := store.Check{Rule: lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, time.Second), Key: "k", Cost: 1}
	if _, err := decideOne(s, c); err != nil {
		t.Fatal(err)
	}
	before := calls(t, server)
	adjustments := make([]store.Adjustment, 60)
	for i := range adjustments {
		adjustments[i] = store.Adjustment{Check: c, At: time.Now().UnixMicro(), Delta: 1}
	}
	s.Adjust(adjustments...)
	s.Flush()
	if made := calls(t, server) - before; made > 3 {
		t.Errorf("%d calls for %d adjustments", made, len(adjustments))
	}
	if n := used(t, server, c.Rule); n != 61 {
		t.Errorf("%d used, want 61", n)
	}
}
