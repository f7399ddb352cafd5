//go:build deep

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestFullCluster: if a request has keys in several slots, one that refuses is enough, although
// another has no room. Known keys are charged, and refunds are made. No breaker opens.
func TestFullCluster(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
	rule := func(zone string, events int64) *store.Rule {
		return storetest.Rule(t, zone, "fixed_window", algorithms.Limit{Events: events, Window: 1000 * time.Hour})
	}
	one, many := rule("one", 1), rule("many", 100)
	awaitService(t, s, many, "client")
	const clients = 12
	key := func(n int) string { return fmt.Sprint("client ", n) }
	for n := range clients {
		take(t, s, one, key(n), 1)
		take(t, s, many, key(n), 1)
	}
	for _, node := range c.Nodes() {
		fill(node)
	}
	ask := func(checks ...store.Check) ([]algorithms.Decision, error) {
		d := make([]algorithms.Decision, len(checks))
		return d, s.Take(context.Background(), checks, d)
	}
	check := func(rule *store.Rule, key string) store.Check { return store.Check{Rule: rule, Key: key, Cost: 1} }
	for n := range clients {
		fresh := fmt.Sprint("new ", n)
		for m := range clients {
			for _, checks := range [][]store.Check{
				{check(many, fresh), check(one, key(m))},
				{check(one, key(m)), check(many, fresh)},
				{check(many, key(n)), check(one, key(m))},
			} {
				d, err := ask(checks...)
				if err != nil || d[0].Allowed && d[1].Allowed {
					t.Fatalf("%s and %s: %+v, %v", checks[0].Key, checks[1].Key, d, err)
				}
			}
		}
		if _, err := ask(check(many, fresh), check(many, key(n))); !errors.Is(err, store.ErrFull) {
			t.Fatalf("a key without a place: %v", err)
		}
	}
	s.Flush() // what was charged in other zones of refused requests is given back
	for n := range clients {
		if d, err := ask(check(many, key(n)), check(many, key((n+1)%clients))); err != nil || !d[0].Allowed || !d[1].Allowed {
			t.Fatalf("known keys: %+v, %v", d, err)
		}
	}
	for n := range clients {
		if d, err := ask(check(many, key(n))); err != nil || d[0].Remaining != 100-4 {
			t.Errorf("%s: %+v, %v", key(n), d, err)
		}
	}
	stays(t, s)
}
