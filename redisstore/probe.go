package redisstore

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Probe implements [store.Prober].
func (s *Store) Probe(ctx context.Context) (store.Server, error) {
	masters := s.topology.Masters()
	if len(masters) == 0 { // they are not discovered yet
		n, err := s.topology.Node(ctx, 0)
		if err != nil {
			return store.Server{}, failure{err}
		}
		masters = []*node.Node{n}
	}
	var slowest store.Server
	for _, n := range masters {
		server, err := probe(ctx, n)
		if err != nil {
			s.topology.ReportFailure()
			return store.Server{}, failure{err}
		}
		if server.RoundTrip >= slowest.RoundTrip {
			server.Evicts = max(server.Evicts, slowest.Evicts)
			slowest = server
		} else {
			slowest.Evicts = max(server.Evicts, slowest.Evicts)
		}
	}
	return slowest, nil
}

// probe asks one server.
func probe(ctx context.Context, n *node.Node) (server store.Server, err error) {
	if _, err := n.Ask(ctx); err != nil { // which may have to make a connection
		return server, err
	}
	if server.RoundTrip, err = n.Ask(ctx); err != nil {
		return server, err
	}
	fields, err := n.Info(ctx)
	if err != nil {
		return server, nil //nolint:nilerr // it answers, and this user may not ask
	}
	server.Version = fields["redis_version"]
	if version := fields["valkey_version"]; version != "" {
		server.Version = "valkey " + version
	}
	if policy := fields["maxmemory_policy"]; policy != "noeviction" {
		server.Evicts = policy
	}
	return server, nil
}

var _ store.Prober = (*Store)(nil)
