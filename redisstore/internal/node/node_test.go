package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// open returns the node at an address.
func open(t *testing.T, address string, timeout time.Duration) *Node {
	var script atomic.Pointer[protocol.Script]
	script.Store(protocol.NewScript(protocol.RedisClock, protocol.TTLMargin))
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
