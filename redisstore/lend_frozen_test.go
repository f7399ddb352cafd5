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

// TestLendFrozen: while Redis stands still, a process spends what it holds. What it asked for meanwhile
// was carried out once or not at all, and what it holds is given back.
func TestLendFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), Timeout: 200 * time.Millisecond})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second)
	c := store.Check{Rule: rule, Key: "k", Cost: 1}
	passed, failed, alone := int64(0), int64(0), 0
	request := func() error {
		d, err := decideOne(s, c)
		switch {
		case err != nil:
			failed++
		case d.Allowed:
			passed++
		default:
			t.Fatalf("refused after %d of 1000: %+v", passed, d)
		}
		return err
	}
	patient.Until(t, "a loan", func() bool { return request() == nil && s.Stats().Lent["z"] > 0 })
	server.Freeze()
	for request() == nil {
		alone++
	}
	server.Thaw()
	if alone == 0 {
		t.Error("no request was decided while Redis stood still")
	}
	patient.Until(t, "an answer", func() bool { return request() == nil })
	closed(t, s)
	patient.Until(t, "no more is used than was decided", func() bool { return used(t, server, rule) <= passed+failed })
	if n := used(t, server, rule); n < passed {
		t.Errorf("%d used, %d passed", n, passed)
	}
	t.Logf("%d passed, %d of them while Redis stood still, %d failed", passed, alone, failed)
}

// TestLendResetByAnother: when a key is reset by another process, no more is admitted on top of the limit
// than was lent at that moment.
func TestLendResetByAnother(t *testing.T) {
	t.Parallel()
	const limit = 60
	server := redistest.Start(t)
	stores := []*redisstore.Store{open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})}
	for _, algorithm := range []string{"token_bucket", "sliding_window_log"} {
		rule := lendingRule(t, "z "+algorithm, algorithm, algorithms.Limit{Events: limit, Window: 1000 * time.Hour}, period)
		checks := func() []store.Check { return []store.Check{{Rule: rule, Key: "k", Cost: 1}} }
		var held int64
		for range 5 { // on a machine that is busy, a key may come too seldom at first
			floodAll(t, stores[:1], 10, 1, checks)
			if held = stores[0].Stats().Lent[rule.Zone()]; held > 0 {
				break
			}
		}
		if held == 0 {
			t.Fatalf("%s: nothing is lent", algorithm)
		}
		if err := stores[1].Reset(t.Context(), rule, "k"); err != nil {
			t.Fatal(err)
		}
		passed := floodAll(t, stores, 300, 4, checks)
		if passed > limit+held || passed < limit/2 {
			t.Errorf("%s: %d passed after the reset, want %d to %d", algorithm, passed, limit/2, limit+held)
		}
		if n := usedOf(t, stores[1], rule, "k"); n > limit {
			t.Errorf("%s: %d used of %d", algorithm, n, limit)
		}
		t.Logf("%s: %d passed after the reset, %d were lent", algorithm, passed, held)
	}
}
