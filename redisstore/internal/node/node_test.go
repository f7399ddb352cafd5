package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

// must ends a test that has an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open returns the node at an address.
func open(t *testing.T, address string, timeout time.Duration) *Node {
	var script atomic.Pointer[protocol.Script]
	script.Store(protocol.NewScript(nil))
	n := New(address, &Config{
		Timeout: timeout, PoolSize: 10, Script: &script, ProbeKey: func(uint16) string { return "probe" }, Done: t.Context().Done(),
	})
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// request asks for one cost.
func request(rule *store.Rule, key string, cost int64) *Request {
	r := NewRequest()
	r.Ops = append(r.Ops, protocol.Op{Rule: rule, Prepared: rule.At(0), Key: key, Cost: cost})
	r.EndGroup()
	r.Expect(1)
	return r
}

// TestLongPipelinesAreSentOnce: Redis answers the first command of several while the others are still
// being written. That is no sign that it has closed the connection.
func TestLongPipelinesAreSentOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	n, ctx := open(t, server.Addr(), 30*time.Second), t.Context()
	long := strings.Repeat("x", 100_000)
	for i := range int64(5) {
		all := []redis.Cmder{redis.NewIntCmd(ctx, "incr", server.Prefix())}
		for range 30 {
			all = append(all, redis.NewStringCmd(ctx, "echo", long))
		}
		n.ProcessAll(ctx, all...)
		for j, cmd := range all {
			if err := cmd.Err(); err != nil {
				t.Fatalf("pipeline %d, command %d: %v", i+1, j+1, err)
			}
		}
		if sent, err := server.Admin().Get(ctx, server.Prefix()).Int64(); err != nil || sent != i+1 {
			t.Fatalf("after %d pipelines: sent %d times, %v", i+1, sent, err)
		}
	}
}

// TestWithoutALink: commands that get no connection have an error, and were not sent.
func TestWithoutALink(t *testing.T) {
	t.Parallel()
	n := open(t, redistest.Shared(t).Addr(), time.Second)
	fails := func(name string, ctx context.Context, want error) {
		t.Helper()
		cmd, ping := redis.NewStatusCmd(ctx, "ping"), redis.NewStatusCmd(ctx, "ping")
		n.ProcessAll(ctx, cmd)
		for i, err := range []error{cmd.Err(), n.Process(ctx, ping, false), ping.Err()} {
			if !errors.Is(closedOr(err), want) {
				t.Errorf("%s, error %d: %v", name, i+1, err)
			}
		}
	}
	for range cap(n.links.used) {
		n.links.used <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	fails("all links are in use", ctx, context.DeadlineExceeded)
	if err := n.Process(ctx, redis.NewStatusCmd(ctx, "ping"), false); MayHaveRun(err) {
		t.Errorf("may have run: %v", err)
	}
	_ = n.Close()
	fails("the node is closed", t.Context(), store.ErrClosed)
}

// reply is an error reply of Redis, as go-redis has it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestFailureOfReplies sorts errors that are hard to provoke, in the words of several versions.
func TestFailureOfReplies(t *testing.T) {
	for text, want := range map[string]string{
		"LOADING Redis is loading the dataset in memory":                                                        store.FailureLoading,
		"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:205.":              store.FailureOOM,
		"ERR Error running script (call to f_1f): @user_script:9: -OOM command not allowed when used memory >":  store.FailureOOM,
		"ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -READONLY You can't write a": store.FailureReadonly,
		"ERR OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:323.":          store.FailureOOM,
		"ERR READONLY You can't write against a read only replica. script: 1f, on @user_script:323.":            store.FailureReadonly,
		"NOPERM User limiter has no permissions to run the 'get' command script: 1f":                            store.FailureAuth,
		"ERR NOPERM this user has no permissions to run script: 1f, on @user_script:323.":                       store.FailureAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":                                         store.FailureAuth,
		"ERR AUTH <password> called without any password configured for the default user.":                      store.FailureAuth,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                               store.FailureCluster,
		"MOVED 3999 127.0.0.1:6381":       store.FailureCluster,
		"ERR unknown command 'EVALSHA'":   store.FailureOther,
		"ERR value is OOM or -something":  store.FailureOther,
		"MISCONF Redis is configured to":  store.FailureOther,
		"BUSY Redis is busy running a sc": store.FailureOther,
	} {
		if got := Failure(reply(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if kind := Failure(fmt.Errorf("read: %w", io.EOF)); kind != store.FailureNetwork { // a server has closed the connection
		t.Errorf("a connection that ends is %s", kind)
	}
	for _, kind := range []string{store.Failure(store.ErrUnavailable), store.Failure(errors.New("strange")), store.Failure(context.DeadlineExceeded)} {
		if !slices.Contains(store.Failures(), kind) {
			t.Errorf("%s is none of %v", kind, store.Failures())
		}
	}
}

// TestAdviceOnRights: where a right is missing, an error says which one, in the words of several versions.
func TestAdviceOnRights(t *testing.T) {
	for text, want := range map[string]advice.Text{
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand":                    advice.GiveRights.With("+evalsha"),
		"NOPERM User limiter has no permissions to run the 'cluster|slots' command":                             advice.GiveRights.With("+cluster|slots"),
		"ERR ACL failure in script: User limiter has no permissions to run the 'zadd' command script: 1f":       advice.GiveRights.With("+zadd"),
		"ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:1.": advice.GiveRights.With("the one that ACL LOG names"),
		"ERR ACL failure in script: No permissions to access a key script: 1f, on @user_script:1.":              advice.GiveKeys.With(),
		"NOPERM this user has no permissions to access one of the keys used as arguments":                       advice.GiveKeys.With(),
		"NOPERM No permissions to access database":                                                              advice.GiveDB.With(),
		"WRONGPASS invalid username-password pair or user is disabled.":                                         {},
	} {
		if _, got := advice.Split(Advise(reply(text), true).Error()); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestMayHaveRun sorts errors that are hard to provoke, in the words of several versions, and those of a Redis that is not
// reached. TestTakeFails and TestAdjustFails in package link have others.
func TestMayHaveRun(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:205.",
		"ERR Error running script (call to f_1f): @user_script:9: -OOM command not allowed when used memory >",
		"ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -READONLY You can't write a",
		"ERR NOREPLICAS Not enough good replicas to write. script: 1f, on @user_script:323.",
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"ERR AUTH <password> called without any password configured for the default user.",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"ASK 3999 127.0.0.1:6381",
	} {
		if MayHaveRun(reply(text)) {
			t.Errorf("%s: it did not run", text)
		}
	}
	for _, text := range []string{
		"NOPERM User limiter has no permissions to run the 'set' command script: 1f, on @user_script:205.",
		"ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:205.",
		"ERR The user executing the script can't run this command or subcommand",
		"ERR ACL failure in script: User limiter has no permissions to run the 'set' command script: 1f, on @user_script:9.",
		"ERR Error running script (call to f_1f): @user_script:9: -NOPERM this user has no permissions to run",
		"ERR Error running script (call to f_1f): @user_script:9: WRONGTYPE Operation against a key",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:9.",
		"ERR Error running script (call to f_1f): @user_script:9: Script killed by user with SCRIPT KILL...",
		"ERR upstream failure", // of a proxy
		"UNBLOCKED the client",
		"",
	} {
		if !MayHaveRun(reply(text)) {
			t.Errorf("%q: it may have run", text)
		}
	}
	if !MayHaveRun(redis.Nil) {
		t.Error("an answer that is nothing may have run")
	}
	server := redistest.Shared(t)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	trusting := open(t, server.TLSAddr(), patient.Patience).config
	trusting.TLS = new(tls.Config) // the system's certificates
	wrongCA := New(server.TLSAddr(), trusting)
	defer wrongCA.Close()
	for name, n := range map[string]*Node{
		"nobody there":   open(t, "127.0.0.1:1", patient.Patience),
		"no such socket": open(t, "unix//nonexistent/socket", patient.Patience),
		"wrong CA":       wrongCA,
	} {
		if err := n.Do(t.Context(), request(rule, "key", 1), false); err == nil || MayHaveRun(err) {
			t.Errorf("%s: nothing was sent, but it may have run: %v", name, err)
		}
	}
	n := open(t, server.Addr(), patient.Patience)
	for name, script := range map[string]string{
		"half-way": "redis.call('SET', KEYS[1], 'x') return redis.call('LPUSH', KEYS[1], 'y')",
		"nonsense": "return 'yes'",
	} {
		n.config.Script.Store(protocol.TextScript(script))
		if err := n.Do(t.Context(), request(rule, "key", 1), false); err == nil || !MayHaveRun(err) {
			t.Errorf("%s: it ran: %v", name, err)
		}
	}
}
