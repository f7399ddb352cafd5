package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// usageOf returns sums of keys with these names, each of one request.
func usageOf(zone string, keys ...string) (sums []store.Usage) {
	from := time.Now().Truncate(time.Hour)
	for _, key := range keys {
		sums = append(sums, store.Usage{Zone: zone, Length: time.Hour, From: from, Until: from.Add(3 * time.Hour), Kind: store.UsageOfKey, Key: key, Requests: 1, Cost: 10})
	}
	return sums
}

// usedBy returns the requests and the costs of all keys in the last hour, and how many keys there are.
func usedBy(t *testing.T, s *redisstore.Store, zone string) (requests, cost int64, keys int) {
	t.Helper()
	now := time.Now()
	q := &store.UsageQuery{Zone: zone, Length: time.Hour, From: now.Truncate(time.Hour).Add(-time.Hour), To: now.Add(time.Hour)}
	for cursor := ""; ; {
		sums, next, err := s.ReadUsage(t.Context(), q, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range sums {
			requests, cost, keys = requests+u.Requests, cost+u.Cost, keys+1
		}
		if cursor = next; cursor == "" {
			return requests, cost, keys
		}
	}
}

// TestUsageIsAddedOnce: calls and answers are lost, and each batch still counts once, if it is sent until it is confirmed.
func TestUsageIsAddedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: time.Second})
	s.Silence()
	n, failed := 0, 0
	for batch := int64(1); batch <= 30; batch++ {
		var keys []string
		for range 20 {
			keys = append(keys, fmt.Sprint("key ", n%50))
			n++
		}
		sums := usageOf("api", keys...)
		proxy.Inject(nth(1, []faultproxy.Fault{faultproxy.CutBefore, faultproxy.CutAfter, faultproxy.CutWithin}[batch%3]))
		patient.Until(t, "a batch to be confirmed", func() bool {
			err := s.AddUsage(t.Context(), "a", batch, sums)
			if err != nil {
				failed++
			}
			return err == nil
		})
	}
	proxy.Inject(nil)
	requests, cost, keys := usedBy(t, s, "api")
	if requests != int64(n) || cost != int64(10*n) || keys != 50 {
		t.Errorf("%d requests, cost %d, %d keys; want %d of 50", requests, cost, keys, n)
	}
	if failed < 20 {
		t.Errorf("only %d calls have failed", failed)
	}
}

// TestUsageWithoutMemory: a Redis without memory takes none of a batch, and all of it later.
func TestUsageWithoutMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), Timeout: 10 * time.Second})
	if err := s.AddUsage(t.Context(), "a", 1, usageOf("api", "old")); err != nil {
		t.Fatal(err)
	}
	server.Configure("maxmemory", "1")
	if err := s.AddUsage(t.Context(), "a", 2, usageOf("api", "old", "new")); err == nil {
		t.Fatal("a Redis without memory takes usage")
	}
	if requests, _, keys := usedBy(t, s, "api"); requests != 1 || keys != 1 {
		t.Errorf("%d requests of %d keys", requests, keys)
	}
	server.Configure("maxmemory", "0")
	for range 2 {
		if err := s.AddUsage(t.Context(), "a", 2, usageOf("api", "old", "new")); err != nil {
			t.Fatal(err)
		}
	}
	if requests, _, keys := usedBy(t, s, "api"); requests != 3 || keys != 2 {
		t.Errorf("%d requests of %d keys, want 3 of 2", requests, keys)
	}
}

// TestUsageInRedis: all that is kept has a lifetime, damaged values do no harm, and a user with the documented rights can do
// all of it.
func TestUsageInRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "password", leastACL(t)...))
	s := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "password", Timeout: 10 * time.Second})
	s.Silence()
	sums := usageOf("a zone: {x}", "one", "two\n")
	if err := s.AddUsage(t.Context(), "a", 1, sums); err != nil {
		t.Fatal(err)
	}
	admin, ctx := server.Admin(), context.Background()
	names := admin.Keys(ctx, "rl:usage*").Val()
	if len(names) != 4 {
		t.Errorf("got %q, want a list, two sums and the number of a batch", names)
	}
	for _, name := range names {
		if life := admin.PTTL(ctx, name).Val(); life <= time.Hour || life > store.UsageBatchLife {
			t.Errorf("%q lives for %v", name, life)
		}
		if strings.HasSuffix(name, ":kone") {
			admin.Set(ctx, name, "damaged", time.Hour)
		}
	}
	if requests, _, keys := usedBy(t, s, "a zone: {x}"); requests != 1 || keys != 1 {
		t.Errorf("with a damaged sum: %d requests of %d keys", requests, keys)
	}
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ":kone"):
			admin.Del(ctx, name)
			admin.RPush(ctx, name, "not a sum")
		case strings.Contains(name, "sent:"):
			admin.Del(ctx, name)
			admin.RPush(ctx, name, "not a number")
		}
	}
	if err := s.AddUsage(t.Context(), "a", 2, sums); err != nil {
		t.Fatal(err)
	}
	if requests, _, keys := usedBy(t, s, "a zone: {x}"); requests != 3 || keys != 2 {
		t.Errorf("after a repair: %d requests of %d keys, want 3 of 2", requests, keys)
	}
}
