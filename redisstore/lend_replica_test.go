//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendReplicaBehind: a loan that is given back, but not to the copy that becomes the master, counts as
// spent there. More is not lost, and nothing is free twice.
func TestLendReplicaBehind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t, redistest.WithArgs("--repl-diskless-sync-delay", "0"))
	replica := redistest.Start(t)
	replica.Follow(server)
	writer := server.Admin().Conn() // who waits for its own writes waits for those before
	defer writer.Close()
	copied := func() bool {
		writer.Set(ctx, "written", "", 0)
		n, err := writer.Do(ctx, "wait", 1, 1000).Int()
		return err == nil && n == 1
	}
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 5*time.Second)
	passed := int64(0)
	patient.Until(t, "a loan", func() bool {
		if d, err := decideOne(s, store.Check{Rule: rule, Key: "k", Cost: 1}); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		passed++
		return s.Stats().Lent["z"] > 50
	})
	held := s.Stats().Lent["z"]
	patient.Until(t, "the replica", copied)
	if err := replica.Admin().ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	if n := used(t, server, rule); n != passed {
		t.Errorf("%d used, %d passed", n, passed)
	}
	after := open(t, redisstore.Options{Address: replica.Addr()})
	patient.Until(t, "the end of the loan", func() bool {
		lent, _, err := after.Lent(ctx, rule, "k")
		return err == nil && lent == 0
	})
	if n := usedOf(t, after, rule, "k"); n != passed+held {
		t.Errorf("%d used on the replica, want the %d that passed and the %d that were held", n, passed, held)
	}
}

// TestLendFailoverLosesANote: a failover that keeps a ban, but not the note of it, has an instance notice when it asks
// next, here after two seconds. Until then no more passes than it held.
func TestLendFailoverLosesANote(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := redistest.Start(t, redistest.WithArgs("--repl-diskless-sync-delay", "0"),
		redistest.WithUser("operator", "p", "+@all", "~*", "resetkeys", "~rl:{*"))
	replica := redistest.Start(t)
	replica.Follow(server)
	proxy := faultproxy.Start(t, server.Addr())
	holder := open(t, redisstore.Options{Address: proxy.Addr(), DenyCache: -1})
	rules := &store.KeyRules{Overrides: true}
	parts := store.Check{Rule: lendingRule(t, "z", "sliding_window_log", algorithms.Limit{Events: 1000, Window: time.Minute}, time.Second), Key: "k", Cost: 1, KeyRules: rules}
	patient.Until(t, "a loan", func() bool {
		if d, err := decideOne(holder, parts); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		return holder.Stats().Lent["z"] > 10
	})

	// The operator may not write the note, so it is as lost as one that was not copied.
	operator := open(t, redisstore.Options{Address: server.Addr(), Username: "operator", Password: "p"})
	if err := operator.Set(ctx, parts.Rule, "k", store.Override{Kind: store.KindBanned}); err == nil {
		t.Fatal("the note was written")
	}
	writer := server.Admin().Conn()
	defer writer.Close()
	patient.Until(t, "the replica", func() bool {
		writer.Set(ctx, "written", "", 0)
		n, err := writer.Do(ctx, "wait", 1, 1000).Int()
		return err == nil && n == 1
	})
	if err := replica.Admin().ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Forward(replica.Addr())
	server.Kill()

	held, began, passed := holder.Stats().Lent["z"], time.Now(), int64(0)
	patient.Until(t, "the ban of a key of which parts were held", func() bool {
		d, err := decideOne(holder, parts)
		if err == nil && d.Allowed {
			passed++
		}
		time.Sleep(time.Second / 10) // so that what was held may last until the next ask
		return err == nil && d.Banned
	})
	if took := time.Since(began); passed > held || took > 3*time.Second && patient.Idle() {
		t.Errorf("%d passed of %d held, for %v", passed, held, took)
	}
}
