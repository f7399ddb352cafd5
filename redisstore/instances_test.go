package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const instancesKey = "rl:instances"

// TestInstances: processes come, crash and leave, with the least rights that docs/redis.md names.
// While Redis is away, the last number stays.
func TestInstances(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t, redistest.WithUser("limiter", "s3cret", leastACL(t)...))
	instance := func(name string) *redisstore.Store {
		return open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", Instance: name})
	}
	expect := func(s *redisstore.Store, want int, when string) {
		t.Helper()
		if got := s.Instances(); got != want {
			t.Fatalf("%s: %d instances, want %d", when, got, want)
		}
	}
	one := instance("one")
	expect(one, 1, "before it has told anybody")
	one.Beat()
	expect(one, 1, "alone")
	two, again := instance("two"), instance("one")
	two.Beat()
	one.Beat()
	again.Beat()
	expect(one, 2, "two processes, one with two stores")
	expect(two, 2, "two processes")

	// Another process has crashed a moment ago, and one long ago.
	now := server.Admin().Time(ctx).Val().UnixMilli()
	server.Admin().ZAdd(ctx, instancesKey, redis.Z{Score: float64(now + 3_600_000), Member: "three"}, redis.Z{Score: float64(now - 1), Member: "four"})
	one.Beat()
	expect(one, 3, "after a crash")
	if ttl := server.Admin().PTTL(ctx, instancesKey).Val(); ttl <= 0 || ttl > 15*time.Second {
		t.Errorf("the key lives for %v, want up to 15s", ttl)
	}

	server.Freeze()
	expect(one, 3, "while Redis is away")
	server.Thaw()

	// The process of a store that is closed counts for a little more than an interval, unless
	// another store of the process sends heartbeats.
	closed(t, two)
	now = server.Admin().Time(ctx).Val().UnixMilli()
	if left := int64(server.Admin().ZScore(ctx, instancesKey, "two").Val()) - now; left > 6_000 {
		t.Errorf("after closing it counts for %d ms more, want at most 6000", left)
	}
	closed(t, again)
	one.Beat()
	if left := int64(server.Admin().ZScore(ctx, instancesKey, "one").Val()) - now; left < 10_000 {
		t.Errorf("the other store of the process counts for %d ms, want about 15000", left)
	}
}

// TestInstanceTellsByItself: a store sends heartbeats without being asked for the number.
func TestInstanceTellsByItself(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	seen := func() int64 { return server.Admin().ZCard(context.Background(), instancesKey).Val() }
	open(t, redisstore.Options{Address: server.Addr()})
	patient.Until(t, "the fleet to be told", func() bool { return seen() == 1 })
}

var _ store.Fleet = (*redisstore.Store)(nil)

// TestInstancesKeyOfAnotherType: whatever another program has written to the key, processes are
// counted again with the next heartbeat.
func TestInstancesKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t, redistest.WithUser("limiter", "s3cret", leastACL(t)...))
	core, logs := observer.New(zapcore.WarnLevel)
	options := redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret"}
	one, two := open(t, options), open(t, redisstore.Options{
		Address: server.Addr(), Username: "limiter", Password: "s3cret", Logger: func() *zap.Logger { return zap.New(core) },
	})
	if err := server.Admin().Set(ctx, instancesKey, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	one.Beat()
	two.Beat()
	if n := two.Instances(); n != 2 {
		t.Errorf("%d instances, want 2", n)
	}
	one.Silence()
	if err := errors.Join(server.Admin().Del(ctx, instancesKey).Err(), server.Admin().RPush(ctx, instancesKey, "x").Err()); err != nil {
		t.Fatal(err)
	}
	two.Beat()
	if n := two.Instances(); n != 1 || server.Admin().PTTL(ctx, instancesKey).Val() <= 0 {
		t.Errorf("%d instances, want 1 and an expiry", n)
	}
	if n := logs.Len(); n != 0 {
		t.Errorf("%d lines in the log, want none", n)
	}

	// If something keeps a process from being counted, the log says so once a minute.
	if err := server.Admin().Do(ctx, "acl", "setuser", "limiter", "-zadd").Err(); err != nil {
		t.Fatal(err)
	}
	two.Beat()
	two.Beat()
	if n := logs.FilterMessageSnippet("does not count this process").Len(); n != 1 || two.Instances() != 1 {
		t.Errorf("%d lines in the log, want 1; %d instances", n, two.Instances())
	}
}
