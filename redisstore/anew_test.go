package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestWhatBeganAnewGivesNothingBack: however a key became new while a request runs, what the request has cost is not
// given back of what others have been charged since. A cost that is known later counts.
func TestWhatBeganAnewGivesNothingBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Shared(t)
	s, setNow := openWithClock(t, server)
	now, lua := storetest.Start, newRedisSide(s)
	wait := func() {
		now += time.Second.Microseconds()
		setNow(now)
	}
	ways := map[string]func(rule *store.Rule) error{
		"reset":   func(rule *store.Rule) error { return s.Reset(ctx, rule, "client") },
		"evicted": func(rule *store.Rule) error { return server.Admin().Del(ctx, s.Key(rule, "client")).Err() },
		"damaged": func(rule *store.Rule) error {
			return server.Admin().Set(ctx, s.Key(rule, "client"), "of another program", time.Hour).Err()
		},
	}
	for _, name := range algorithms.Names() {
		for _, rule := range storetest.Kinds(t, name, 10, time.Hour) {
			for way, renew := range ways {
				charge := func() store.Adjustment {
					t.Helper()
					c := store.Check{Rule: rule, Key: "client", Cost: 10, LeaseID: storetest.LeaseID(rule)}
					d := lua.take(t, c)
					if !d.Allowed {
						t.Fatalf("%s, %s: %+v", rule.ID(), way, d)
					}
					wait()
					return store.GiveBack(&c, &d)
				}
				left := func() int64 {
					return lua.take(t, store.Check{Rule: rule, Key: "client", LeaseID: storetest.LeaseID(rule)}).Remaining
				}
				old := charge()
				anew := func() {
					if err := renew(rule); err != nil {
						t.Fatal(err)
					}
					wait()
				}
				anew()
				made := charge()
				if lua.adjust(t, old); left() > 0 {
					t.Errorf("%s, %s: %d are left after a refund from before", rule.ID(), way, left())
				}
				if lua.adjust(t, made); left() != 10 {
					t.Errorf("%s, %s: %d are left after another refund", rule.ID(), way, left())
				}
				if name == "concurrency" {
					continue
				}
				anew()
				made.Delta = 3
				if lua.adjust(t, made); left() != 7 {
					t.Errorf("%s, %s: %d are left after a late cost", rule.ID(), way, left())
				}
				if err := s.Reset(ctx, rule, "client"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
