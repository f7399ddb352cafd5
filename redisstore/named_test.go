package redisstore_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestNodesNameEachOther: at the end of a slot's move its two nodes may each say for a moment that the other has
// it. Calls wait for that moment to pass: requests, adjustments and commands of operators.
func TestNodesNameEachOther(t *testing.T) {
	t.Parallel()
	const moment = 30 * time.Millisecond // less than the pauses, so all that a slow machine can do is to pass
	var until atomic.Int64
	server := redistest.Shared(t)
	nodes := []*faultproxy.Proxy{faultproxy.Start(t, server.Addr()), faultproxy.Start(t, server.Addr())}
	_, port, _ := net.SplitHostPort(nodes[0].Addr())
	for i, n := range nodes {
		other, asked := nodes[1-i].Addr(), new(atomic.Int64)
		n.Rewrite(func(command string, reply []byte) []byte {
			switch {
			case command == "cluster": // SLOTS and INFO are asked together, and answered with two errors
				var answers []byte
				for range bytes.Count(reply, []byte("\r\n")) {
					if asked.Add(1)%2 == 0 {
						answers = append(answers, "$25\r\ncluster_current_epoch:1\r\n\r\n"...)
					} else {
						answers = fmt.Appendf(answers, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%s\r\n", port)
					}
				}
				return answers
			case strings.HasPrefix(command, "eval"):
				until.CompareAndSwap(0, time.Now().Add(moment).UnixNano())
				if time.Now().UnixNano() < until.Load() {
					return []byte("-MOVED 1 " + other + "\r\n")
				}
			}
			return reply
		})
	}
	s := open(t, redisstore.WithoutRenewal(redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: []string{nodes[0].Addr()}, KeyPrefix: server.Prefix(), DenyCache: -1, Timeout: time.Minute,
	}))
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 100, Window: 1000 * time.Hour})
	check := store.Check{Rule: rule, Key: "k", Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
	for _, call := range []func() error{
		func() error { return s.Take(t.Context(), []store.Check{check}, make([]algorithms.Decision, 1)) },
		func() error {
			return s.SetRule(t.Context(), rule, store.Selector{Key: "k"}, store.Override{Kind: store.KindExempt})
		},
		func() error {
			s.Adjust(store.Adjustment{Check: named(check), At: time.Now().UnixMicro(), Delta: -1})
			if s.Flush(); s.Waiting() > 0 {
				return fmt.Errorf("%d adjustments wait", s.Waiting())
			}
			return nil
		},
	} {
		until.Store(0)
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}
