package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
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

// Examine implements [store.Observed].
func (s *operators) Examine(ctx context.Context) store.Examination {
	found := store.Examination{Timeout: s.timeout}
	masters, err := s.masters(ctx)
	if err != nil {
		found.Servers = []store.Condition{s.troubled(store.Condition{}, err)}
		return found
	}
	found.Servers = make([]store.Condition, len(masters))
	var group sync.WaitGroup
	for i, n := range masters {
		group.Go(func() {
			patience, cancel := context.WithTimeout(ctx, max(mostSilence, s.timeout))
			defer cancel()
			c, err := s.look(ctx, patience, n)
			if err != nil {
				c = s.troubled(c, err)
			}
			found.Servers[i] = c
		})
	}
	group.Wait()
	return found
}

// masters returns the servers that hold states.
func (s *operators) masters(ctx context.Context) ([]*node.Node, error) {
	if masters := s.servers.Masters(); len(masters) > 0 {
		return masters, nil
	}
	n, err := s.servers.Node(ctx, 0) // they are not discovered yet
	if err != nil {
		return nil, err
	}
	return []*node.Node{n}, nil
}

// mostSilence is how long a server may take for the first answer, unless requests wait longer for it.
const mostSilence = 2500 * time.Millisecond

// look returns the condition of a server, or why it does not decide. For the first answer there may be less time.
func (s *operators) look(ctx, patience context.Context, n *node.Node) (c store.Condition, err error) {
	c.Address = n.Address
	first, err := n.Ask(patience) // which may have to make a connection
	if err != nil {
		return c, err
	}
	ahead, took, err := n.Clock(ctx)
	if err != nil {
		return c, err
	}
	c.ClockAhead, c.ClockTook = ahead, took
	c.RoundTrip = max(min(first, took), n.Distance()) // this machine may be busy for one of them, and the distance grows slowly
	if fields, err := n.Info(ctx); err == nil {
		describe(&c, fields)
	}
	return c, cmp.Or(n.Charges(ctx), n.Whole(ctx))
}

// describe adds what INFO says.
func describe(c *store.Condition, fields map[string]string) {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return n
	}
	c.Described, c.Version = true, versionOf(fields)
	c.Evicts, c.Evicted = fields["maxmemory_policy"], number("evicted_keys")
	c.Memory, c.MaxMemory = number("used_memory"), number("maxmemory")
}

// versionOf returns the version of a server from what INFO says.
func versionOf(fields map[string]string) string {
	if version := fields["valkey_version"]; version != "" {
		return "valkey " + version
	}
	return fields["redis_version"]
}

// troubled adds to a condition why the server does not decide.
func (s *operators) troubled(c store.Condition, err error) store.Condition {
	c.Trouble, c.Err = s.trouble(err), s.explain(err)
	return c
}

func (s *operators) trouble(err error) string {
	var (
		notTLS    tls.RecordHeaderError
		untrusted *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &notTLS), errors.As(err, &untrusted), s.wantsTLS(err), strings.Contains(err.Error(), "remote error: tls: "):
		return store.TroubleTLS
	}
	kind, said := node.Failure(err), redis.Error(nil)
	if errors.As(err, &said) { // also if the servers could not be found
		kind = node.Failure(said)
	}
	switch kind {
	case store.FailureAuth:
		if node.LacksRight(err) {
			return store.TroubleRights
		}
		return store.TroubleLogin
	case store.FailureReadonly:
		return store.TroubleReplica
	case store.FailureOOM:
		return store.TroubleMemory
	}
	if _, fix := advice.Split(err.Error()); fix != (advice.Text{}) {
		return store.TroubleServer
	}
	return store.TroubleAnswer
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

// wantsTLS reports whether the server seems to expect TLS: it hangs up on a client without, and has never answered.
func (s *operators) wantsTLS(err error) bool { return hungUp(err) && !s.encrypted && !s.hasAnswered() }

// hasAnswered reports whether a server has answered this store.
func (s *operators) hasAnswered() bool {
	return slices.ContainsFunc(s.servers.Masters(), func(n *node.Node) bool { return n.Distance() > 0 })
}

// hungUp reports whether the server has closed the connection at once, as one that expects TLS does.
func hungUp(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

var _ store.Shared = (*Store)(nil)
