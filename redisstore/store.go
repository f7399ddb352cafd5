package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/multislot"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/prepaid"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store implements [store.Store]: a stack of layers, and what operators ask beside it.
type Store struct {
	operators
	script atomic.Pointer[protocol.Script] // a test may set another while it is in use
	today  layer.Date

	refusals *refusals.Layer // nil: none are remembered

	prepaid *prepaid.Layer // the outermost

	logger func() *zap.Logger
	once   sync.Once
	quit   chan struct{} // closed when the store is

	uncounted, distant throttle.Throttle // what was last warned of
}

// script has the digests of the scripts, for all stores.
var script = sync.OnceValue(func() *protocol.Script { return protocol.NewScript(nil) })

// New makes a store. It checks the options and does not connect: Redis may come later.
func New(options Options) (*Store, error) {
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	if o.clock == nil {
		o.clock = time.Now
	}
	s := &Store{
		operators: operators{timeout: o.Timeout, keys: keys.Prefix(o.KeyPrefix), encrypted: o.TLS != nil, cluster: o.Mode == ModeCluster},
		logger:    o.Logger, quit: make(chan struct{}),
	}
	s.script.Store(script())
	if s.servers, err = s.open(&o); err != nil {
		return nil, err
	}
	s.stack(&o)
	s.networks = newNetworks(s, o.clock)
	go s.link.Run()
	go s.tend()
	go s.prepaid.Tend(s.quit)
	name := cmp.Or(o.Instance, rand.Text())
	s.heartbeat = startHeartbeat(s.eval, s.warnUncounted, s.networks.mark, s.keys, name)
	return s, nil
}

// stack puts the layers on the servers: the link, what divides requests if there are several slots, what
// remembers refusals, and what spends units that were charged ahead.
func (s *Store) stack(o *Options) {
	s.today = func() int64 { return time.Now().UnixMicro() }
	c := link.Config{
		Servers: servers{s.servers}, Keys: s.keys, Script: &s.script, Today: &s.today, Clock: o.clock, Logger: s.logger,
		Ends: o.Ends, Done: s.quit,
	}
	s.link = link.New(&c)
	inner := layer.Layer(s.link)
	if o.Mode == ModeCluster {
		inner = &multislot.Layer{Inner: s.link, GiveBack: s.Adjust}
	}
	if o.DenyCache > 0 {
		s.refusals = &refusals.Layer{Layer: inner, Cache: refusals.NewCache(o.DenyCache, o.Timeout), Today: &s.today}
		inner = s.refusals
	}
	s.prepaid = prepaid.New(inner, o.Timeout)
	s.forget = s.prepaid.Forget
}

// Take implements [store.Store] with one call of the script, which it may share with
// others.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := layer.Validate(checks)
	if err == nil && len(checks) > 0 {
		err = s.prepaid.Take(ctx, checks, decisions)
	}
	return failed(err)
}

// failed returns an error that the store returns, with its kind, or nil if there is none.
func failed(err error) error {
	if err == nil || errors.Is(err, store.ErrUnavailable) { // which says its kind, and costs nothing
		return err
	}
	return failure{err}
}

// failure is an error that the store returns.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Failure returns the kind of the error, see [store.Failure].
func (f failure) Failure() string { return node.Failure(f.error) }

// Adjust implements [store.Store].
func (s *Store) Adjust(adjustments ...store.Adjustment) {
	s.prepaid.Adjust(adjustments...)
}

// open makes the ways to the servers. It reads the certificates and does not connect.
func (s *Store) open(o *Options) (*topology.Topology, error) {
	var encrypted *tls.Config
	if o.TLS != nil {
		var err error
		if encrypted, err = o.TLS.config(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	config := &node.Config{
		Username: o.Username, Password: o.Password, DB: o.DB, TLS: encrypted, PoolSize: o.PoolSize, Timeout: o.Timeout,
		Dial: o.Dial, Cluster: o.Mode == ModeCluster, Script: &s.script, ProbeKey: s.probeKey, Done: s.quit,
	}
	switch o.Mode {
	case ModeSentinel:
		var sentinels []*redis.Options
		for _, address := range o.Addresses {
			c := config.Options(address)
			c.Username, c.Password = o.SentinelUsername, o.SentinelPassword
			sentinels = append(sentinels, c)
		}
		return topology.NewSentinel(o.MasterName, sentinels, config, o.Logger), nil
	case ModeCluster:
		return topology.NewCluster(o.Addresses, config, o.Logger), nil
	}
	return topology.NewFixed(node.New(o.Address, config), 1), nil
}

// probeKey names the key that a probe writes, which in a Cluster has a slot.
func (s *Store) probeKey(slot uint16) string {
	if s.cluster {
		return s.keys.Probe(topology.TagAt(slot))
	}
	return s.keys.Probe("")
}

// Reset implements [store.Store]. What this process knows of the key is forgotten first, so that it is not told
// to the new state, and afterwards, because requests may have come meanwhile.
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	override, err := s.GetRule(ctx, rule, store.Selector{Key: key})
	override.For = 0 // what is left may be less than an override can be set for
	names := []string{s.keys.State(rule.ID(), key), s.keys.Ban(rule, key)}
	if prepared, _ := rule.PrepareOverride(override); prepared.ReplacesLimit(rule) {
		names = append(names, s.keys.State(prepared.States(rule.States()).ID, key))
	}
	s.prepaid.Forget(rule, key)
	for _, name := range names {
		err = errors.Join(err, s.delete(ctx, name))
	}
	s.prepaid.Forget(rule, key)
	return err
}

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats {
	all := s.link.Stats()
	all.Breaker, all.Silent = s.Breaker(), s.servers.Silent()
	for _, n := range s.servers.Masters() {
		all.Calls += n.Calls()
		all.Waited += n.Waited()
	}
	all.Spared, all.DenyHits = s.prepaid.Spared.Load(), s.prepaid.Refused.Load()
	if s.refusals != nil {
		all.DenyHits += s.refusals.Hits()
	}
	return all
}

// Close implements [store.Store]. What is still held is given back, because nothing will renew
// it.
func (s *Store) Close() error {
	s.heartbeat.leave()
	s.once.Do(func() { close(s.quit) })
	s.prepaid.Wait()
	err := s.link.Close()
	var broken net.Error // a connection that breaks as it is closed is closed too
	if errors.Is(err, redis.ErrClosed) || errors.As(err, &broken) {
		return nil
	}
	return err
}

// warnUncounted says that Redis does not count this process among those that live.
func (s *Store) warnUncounted(cause error) {
	if s.uncounted.Allow() {
		s.logger().Warn("redis does not count this process, so on_store_error local may divide limits by a wrong number of instances",
			zap.String("key_prefix", string(s.keys)), zap.Error(cause))
	}
}

var _ store.Observed = (*Store)(nil)
