package node

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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

// TestClosedWhileIdle: if Redis has closed a connection since the last call, the next call is made over
// another one, and does not fail.
func TestClosedWhileIdle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n, ctx := open(t, server.Addr(), 10*time.Second), t.Context()
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
	for i := range int64(20) {
		r := request(rule, "k", 1)
		if err := n.Do(ctx, r, false); err != nil || r.Decisions[0].Remaining != 99-i {
			t.Fatalf("call %d: %v, %+v", i+1, err, r.Decisions[0])
		}
		if links := n.links.count.Load(); i > 0 && links != 1 { // the first call was told that Redis does not know the script
			t.Fatalf("call %d: %d links", i+1, links)
		}
		if err := server.Admin().Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxIdle) // before that, a call does not look whether it was closed
	}
}

// TestIdleLinksAreKept: a connection whose last call had to be over by now is used again.
func TestIdleLinksAreKept(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	server := redistest.Start(t)
	n, ctx := open(t, server.Addr(), timeout), t.Context()
	received := func() string {
		return regexp.MustCompile(`total_connections_received:(\d+)`).FindString(server.Admin().Info(ctx, "stats").Val())
	}
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
	var before string
	for i := range 3 {
		if err := n.Do(ctx, request(rule, "k", 1), false); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // the first call was told that Redis does not know the script
			before = received()
			time.Sleep(timeout)
		}
	}
	if after := received(); after != before {
		t.Errorf("another connection was made: %s before, %s after", before, after)
	}
}

// TestLongPipelinesAreSentOnce: Redis answers the first command of several while the others are still
// being written. That is no sign that it has closed the connection.
func TestLongPipelinesAreSentOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n, ctx := open(t, server.Addr(), 30*time.Second), t.Context()
	long := strings.Repeat("x", 100_000)
	for i := range int64(5) {
		if _, err := n.pipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "sent")
			for range 30 {
				p.Echo(ctx, long)
			}
			return nil
		}); err != nil {
			t.Fatalf("pipeline %d: %v", i+1, err)
		}
		if sent, err := server.Admin().Get(ctx, "sent").Int64(); err != nil || sent != i+1 {
			t.Fatalf("after %d pipelines: sent %d times, %v", i+1, sent, err)
		}
	}
}

// TestReach: afterwards Redis knows the script, and nothing else has changed.
func TestReach(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n := open(t, server.Addr(), time.Second)
	if answered, _ := n.reach(); !answered {
		t.Fatal("not reached")
	}
	known := server.Admin().ScriptExists(context.Background(), n.config.Script.Load().Digest).Val()
	if keys := server.Admin().DBSize(context.Background()).Val(); keys != 0 || len(known) != 1 || !known[0] {
		t.Errorf("the script is known: %v, %d keys", known, keys)
	}
	server.Kill()
	if answered, _ := n.reach(); answered {
		t.Error("reached, but Redis is dead")
	}
}
