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
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// named gives a check a lease of its own.
func named(c store.Check) store.Check {
	c.LeaseID = storetest.LeaseID(c.Rule)
	return c
}

// TestCluster is what a Cluster does that is well.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], DenyCache: -1})
	works(t, s)
	for _, key := range []string{"", "a", "rl:{203.0.113.7}:zone:token_bucket.1", "{}", "a{}b", "a{b", "{{a}}", "}{a}{b}"} {
		if got, want := topology.SlotOf(key), c.SlotOf(key); int(got) != want {
			t.Errorf("%q: slot %d, the server says %d", key, got, want)
		}
	}
	// Until the slot has moved, the node that is to have it knows the key, and sends a call that comes to it first back.
	t.Run("ListsTakeFewCalls", func(t *testing.T) {
		listsTakeFewCalls(t, s, func() { startMove(c, "{key%206}").MoveKeys() })
	})
}

// startMove begins to move the slot of a key to another node.
func startMove(c *redistest.Cluster, key string) *redistest.Migration {
	from, to := c.MasterOf(key), c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	return c.StartMove(c.SlotOf(key), from, to)
}

// TestSentinel reaches a master through Sentinels, with TLS and the documented users. Without a master, the error says
// what all of them answer.
func TestSentinel(t *testing.T) {
	t.Parallel()
	g := redistest.StartSentinel(t,
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("master"), redistest.WithUser("limiter", "s3cret", leastACL(t)...)},
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("sentinel"), redistest.WithUser("finder", "s3cret2", sentinelACL(t)...)})
	files := g.Servers()[0].TLS()
	options := redisstore.Options{
		Mode: redisstore.ModeSentinel, MasterName: redistest.MasterName, Addresses: g.Addrs(),
		Username: "limiter", Password: "s3cret", SentinelUsername: "finder", SentinelPassword: "s3cret2",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	}
	works(t, open(t, options))
	options.MasterName, options.Timeout = "nobody", 500*time.Millisecond
	s := open(t, options)
	patient.Until(t, "an error that says what all Sentinels answer", func() bool {
		err := attempt(s, hourly(t))
		return err != nil && strings.Contains(err.Error(), `no sentinel answers where the master "nobody" is`) &&
			strings.Contains(err.Error(), `watches no master "nobody"`)
	})
}

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
