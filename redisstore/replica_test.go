//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestStatesElsewhere: a replica has the same states with the same expiries, and also a Redis that
// has read them from its AOF, whether a charge has set the expiry or kept it. Both decide like the
// master.
func TestStatesElsewhere(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPersistence(), redistest.WithArgs("--repl-diskless-sync-delay", "0"))
	replica := redistest.Start(t)
	ctx := context.Background()
	replica.Follow(server)
	s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: -1})
	rules := make(map[string]*store.Rule)
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // a lease is the zone's own
		}
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 9, time.Hour))
		rules[s.Key(rule, "client")] = rule
		for range 5 {
			take(t, s, rule, "client", 1)
		}
	}
	type stored struct {
		dump    string
		expires time.Duration
	}
	read := func(c *redis.Client) map[string]stored {
		all := make(map[string]stored)
		for key := range rules {
			all[key] = stored{c.Dump(ctx, key).Val(), c.PExpireTime(ctx, key).Val()}
		}
		return all
	}
	want := read(server.Admin())
	if n := server.Admin().Wait(ctx, 1, 10*time.Second).Val(); n != 1 {
		t.Fatalf("%d replicas have the writes", n)
	}
	copied := read(replica.Admin())
	server.Kill()
	server.Restart()
	loaded := read(server.Admin())
	for key, state := range want {
		if copied[key] != state || state.dump == "" || state.expires <= 0 {
			t.Errorf("%s: %+v, and at the replica %+v", key, state, copied[key])
		}
		if loaded[key] != state {
			t.Errorf("%s: %+v, and from the AOF %+v", key, state, loaded[key])
		}
	}
	if err := replica.Admin().ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	after := open(t, redisstore.Options{Address: replica.Addr(), DenyCache: -1})
	for key, rule := range rules {
		if d := take(t, after, rule, "client", 1); !d.Allowed || d.Remaining > 4 {
			t.Errorf("%s: after a failover: %+v", key, d)
		}
	}
}
