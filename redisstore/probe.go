package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Probe implements [store.Shared]. When a server has answered after a failure, the circuit breaker is closed, so that requests
// ask it at once.
func (s *operators) Probe(ctx context.Context) (slowest store.Condition, err error) {
	masters, err := s.masters(ctx)
	if err != nil {
		return slowest, failure{s.explain(err)}
	}
	evicts := ""
	for _, n := range masters {
		c, err := s.look(ctx, ctx, n)
		if err != nil && node.Failure(err) != store.FailureOOM { // a full Redis still decides what needs no room
			s.servers.ReportFailure()
			return slowest, failure{s.explain(err)}
		}
		if c.Evicts != "noeviction" {
			evicts = max(c.Evicts, evicts)
		}
		if c.RoundTrip >= slowest.RoundTrip {
			slowest = c
		}
	}
	slowest.Evicts = evicts
	for _, n := range masters {
		if err := n.Settle(ctx); err != nil {
			return slowest, failed(err)
		}
	}
	return slowest, nil
}

// explain adds what is most likely wrong to an error that does not say so.
func (s *operators) explain(err error) error {
	var notTLS tls.RecordHeaderError
	switch {
	case s.wantsTLS(err):
		return fmt.Errorf("%w: the server closed the connection at once; if it expects TLS, add tls", err)
	case hungUp(err) && s.hasAnswered():
		return fmt.Errorf("%w: the server answered before; is it still running?", err)
	case errors.As(err, &notTLS):
		return fmt.Errorf("%w: the server does not answer with TLS; leave tls out, or use the port for TLS", err)
	case errors.Is(err, context.DeadlineExceeded) && s.encrypted:
		return fmt.Errorf("%w: there was no answer in time; is this a port for TLS? if not, leave tls out", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: there was no answer in time; is the address right, and does a firewall drop the packets?", err)
	}
	return err
}

// versionOf returns the version of a server from what INFO says.
func versionOf(fields map[string]string) string {
	if version := fields["valkey_version"]; version != "" {
		return "valkey " + version
	}
	return fields["redis_version"]
}
