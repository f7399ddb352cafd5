package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// operators is what operators ask of a store, beside the layers that requests pass.
type operators struct {
	timeout   time.Duration
	keys      keys.Prefix
	encrypted bool // with TLS
	cluster   bool
	servers   *topology.Topology
	link      *link.Link
	heartbeat *heartbeat
	last      atomic.Pointer[lastReports]
	networks  *networks
	forget    func(rule *store.Rule, key string) // what is held of a key, and what was remembered of its refusals
}

// Instances implements [store.Fleet].
func (s *operators) Instances() int { return s.heartbeat.instances() }

// Breaker returns the state of the circuit breaker: closed while Redis is asked, open while it is
// not, and half-open while one call finds out whether it is back. If there are several masters, the
// worst state counts.
func (s *operators) Breaker() string {
	worst := store.BreakerClosed
	for _, n := range s.servers.Masters() {
		switch state := n.Breaker(); state {
		case store.BreakerOpen:
			return state
		case store.BreakerHalfOpen:
			worst = state
		}
	}
	return worst
}
