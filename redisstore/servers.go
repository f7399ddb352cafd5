package redisstore

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
)

// servers are the nodes of a topology, as the link asks them.
type servers struct{ *topology.Topology }

// Node implements [link.Servers].
func (s servers) Node(ctx context.Context, slot uint16) (link.Server, error) {
	return s.Topology.Node(ctx, slot)
}

// Redirect implements [link.Servers].
func (s servers) Redirect(ctx context.Context, from link.Server, slot uint16, err error, hop int) (link.Server, bool, error) {
	return s.Topology.Redirect(ctx, from.(*node.Node), slot, err, hop)
}

const (
	// firstTend is when the connections of a store that was opened are looked after, and tendInterval how
	// often from then on.
	firstTend    = 1083 * time.Millisecond // not together with the first heartbeat or its default timeout, see there
	tendInterval = 5 * time.Second
)

// tend makes connections, and looks after them until the store is closed.
func (s *Store) tend() {
	for _, n := range s.servers.Masters() {
		n.Connect()
	}
	timer := time.NewTimer(firstTend)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.quit:
			return
		}
		for _, n := range s.servers.Masters() {
			n.Tend()
			s.warnFar(n)
		}
		timer.Reset(tendInterval)
	}
}

// warnFar says that the timeout is short for the round trip to a Redis.
func (s *Store) warnFar(n *node.Node) {
	if trip := n.Distance(); 3*trip > s.timeout && s.distant.Allow() {
		s.logger().Warn("the timeout is short for the round trip to redis: under load, requests may not be decided in time; "+advice.NearerStore.With().String(),
			zap.String("address", n.Address), zap.Duration("round_trip", trip), zap.Duration("timeout", s.timeout))
	}
}
