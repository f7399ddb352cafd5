package node

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

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
