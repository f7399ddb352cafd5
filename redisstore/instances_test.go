package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// least returns the options of a store whose user has the documented rights.
func least(t testing.TB, server *redistest.Server) redisstore.Options {
	t.Helper()
	o := at(server)
	o.Username, o.Password = "least-"+server.Prefix(), "s3cret"
	grant(t, server, o.Username, append([]string{"on", ">s3cret"}, leastACL(t)...)...)
	return o
}

// grant changes the rights of a user.
func grant(t testing.TB, server *redistest.Server, user string, rules ...string) {
	t.Helper()
	command := []any{"acl", "setuser", user}
	for _, rule := range rules {
		command = append(command, rule)
	}
	must(t, server.Admin().Do(t.Context(), command...).Err())
}

// TestInstances: processes come, crash and leave, with the least rights that docs/redis.md names.
func TestInstances(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Shared(t)
	options, instancesKey := least(t, server), server.Prefix()+":instances"
	instance := func(name string) *redisstore.Store {
		options.Instance = name
		return open(t, options)
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
	if ttl := server.Admin().PTTL(ctx, instancesKey).Val(); ttl <= 0 || ttl > 75*time.Second {
		t.Errorf("the key lives for %v, want up to 75s", ttl)
	}

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

var _ store.Fleet = (*redisstore.Store)(nil)

// TestInstancesKeyOfAnotherType: whatever another program has written to the key, processes are
// counted again with the next heartbeat.
func TestInstancesKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Shared(t)
	core, logs := observer.New(zapcore.WarnLevel)
	options, instancesKey := least(t, server), server.Prefix()+":instances"
	one := open(t, options)
	options.Logger = func() *zap.Logger { return zap.New(core) }
	two := open(t, options)
	must(t, server.Admin().Set(ctx, instancesKey, "x", 0).Err())
	one.Beat()
	two.Beat()
	if n := two.Instances(); n != 2 {
		t.Errorf("%d instances, want 2", n)
	}
	one.Silence()
	must(t, errors.Join(server.Admin().Del(ctx, instancesKey).Err(), server.Admin().RPush(ctx, instancesKey, "x").Err()))
	two.Beat()
	if n := two.Instances(); n != 1 || server.Admin().PTTL(ctx, instancesKey).Val() <= 0 {
		t.Errorf("%d instances, want 1 and an expiry", n)
	}
	if n := logs.Len(); n != 0 {
		t.Errorf("%d lines in the log, want none", n)
	}

	// If something keeps a process from being counted, the log says so once a minute.
	grant(t, server, options.Username, "-zadd")
	two.Beat()
	two.Beat()
	if n := logs.FilterMessageSnippet("does not count this process").Len(); n != 1 || two.Instances() != 1 {
		t.Errorf("%d lines in the log, want 1; %d instances", n, two.Instances())
	}
}

// TestTLSIsGuessedBeforeTheFirstAnswer: a server that hangs up expects TLS perhaps, unless it has answered before.
func TestTLSIsGuessedBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	server, dead := redistest.Shared(t), net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
	proxy := faultproxy.Start(t, server.Addr())
	options := at(server)
	options.Address, options.Timeout = proxy.Addr(), 20*time.Second
	s := open(t, options)
	patient.Until(t, "an answer", func() bool { _, err := s.Probe(t.Context()); return err == nil && s.HasAnswered() })
	proxy.Forward(dead) // the proxy goes on, and hangs up
	proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	if _, err := s.Probe(t.Context()); err == nil {
		t.Error("a probe passes, although all connections break")
	}
	found := s.Examine(t.Context()).Servers[0]
	if found.Trouble != store.TroubleAnswer || !strings.Contains(found.Err.Error(), "answered before") {
		t.Errorf("after an answer: %q, %v", found.Trouble, found.Err)
	}
	never := open(t, redisstore.Options{Address: faultproxy.Start(t, dead).Addr()})
	if found := never.Examine(t.Context()).Servers[0]; found.Trouble != store.TroubleTLS {
		t.Errorf("without an answer: %q, %v", found.Trouble, found.Err)
	}
}
