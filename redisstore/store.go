// Package redisstore keeps all states in a Redis that many instances share. One script
// call decides all checks of a request, on Redis's clock.
package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/denycache"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store implements [store.Store].
type Store struct {
	keys      keys
	timeout   time.Duration
	encrypted bool                            // with TLS
	script    atomic.Pointer[protocol.Script] // a test may set another while it is in use
	topology  topology.Topology
	cache     *denycache.Cache
	requests  sync.Pool

	loans     *loans.Table
	slots     *loans.Slots
	spared    atomic.Uint64 // requests that needed no call because of what is held
	loansDone chan struct{} // closed when all that is held has been given back

	holds   store.Holds
	outbox  *outbox.Outbox
	sending sync.Mutex // held while adjustments are under way

	heartbeat *heartbeat

	today  func() int64     // microseconds since 1970; only the calendar needs it
	clock  func() time.Time // by which leases fall due
	logger func() *zap.Logger

	ends    func() bool // whether the process does
	lingers bool        // when the store is closed, something still waits; see linger
	once    sync.Once
	quit    chan struct{} // closed when the store is
	done    chan struct{} // closed when adjustments have ended

	damaged, losing, uncounted, distant throttle.Throttle // what was last warned of
}

// New makes a store. It checks the options and does not connect: Redis may come later.
func New(options Options) (*Store, error) {
	options, err := options.Complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		keys:      keys{prefix: options.KeyPrefix, cluster: options.Mode == ModeCluster},
		timeout:   options.Timeout,
		encrypted: options.TLS != nil,
		cache:     denycache.New(options.DenyCache, options.Timeout),
		outbox:    outbox.New(),
		loans:     loans.New(),
		slots:     loans.NewSlots(),
		loansDone: make(chan struct{}),
		today:     func() int64 { return time.Now().UnixMicro() },
		clock:     options.clock,
		logger:    options.Logger,
		ends:      options.Ends,
		quit:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.requests.New = func() any { return node.NewRequest() }
	s.script.Store(protocol.NewScript(protocol.RedisClock, protocol.TTLMargin))
	if s.topology, err = s.open(&options); err != nil {
		return nil, err
	}
	go s.runOutbox()
	go s.tendLoans()
	s.heartbeat = startHeartbeat(s.eval, s.warnUncounted, s.loans.CountProcesses, &s.keys, options.Instance)
	for _, n := range s.topology.Masters() {
		go n.Prepare()
	}
	go s.tend()
	return s, nil
}

// open makes the ways to the servers. It reads the certificates and does not connect.
func (s *Store) open(o *Options) (topology.Topology, error) {
	var encrypted *tls.Config
	if o.TLS != nil {
		var err error
		if encrypted, err = o.TLS.config(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	config := &node.Config{
		Username: o.Username, Password: o.Password, DB: o.DB, TLS: encrypted, PoolSize: o.PoolSize, Timeout: o.Timeout,
		Cluster: s.keys.cluster, Script: &s.script, ProbeKey: s.keys.probe, Done: s.quit,
	}
	switch o.Mode {
	case ModeSentinel:
		var sentinels []*redis.Client
		for _, address := range o.Addresses {
			c := config.Options(address)
			c.Username, c.Password, c.PoolSize = o.SentinelUsername, o.SentinelPassword, 2
			sentinels = append(sentinels, redis.NewClient(c))
		}
		return topology.NewSentinel(o.MasterName, sentinels, config), nil
	case ModeCluster:
		return topology.NewCluster(o.Addresses, config), nil
	}
	return topology.NewSingle(node.New(o.Address, config)), nil
}

// tend looks after the connections until the store is closed.
func (s *Store) tend() {
	timer := time.NewTimer(firstBeat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.quit:
			return
		}
		for _, n := range s.topology.Masters() {
			n.Tend()
			s.warnFar(n)
		}
		timer.Reset(beatInterval)
	}
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	override, err := s.Get(ctx, rule, key)
	names := []string{s.keys.state(rule.ID(), key), s.keys.ban(rule, key)}
	if prepared, _ := rule.PrepareOverride(override); prepared.ReplacesLimit(rule) {
		names = append(names, s.keys.state(prepared.States(rule.States()).ID, key))
	}
	if rule.Lend() > 0 {
		s.loans.Forget(rule.Zone(), key)
		s.giveSlotsBack(s.slots.Forget(rule.Zone(), key))
	}
	for _, name := range names {
		err = errors.Join(err, s.delete(ctx, name))
	}
	s.cache.DeleteKey(rule.At(s.date(rule)), key)
	return err
}

// Instances implements [store.Fleet].
func (s *Store) Instances() int { return s.heartbeat.instances() }

// Breaker returns the state of the circuit breaker: closed while Redis is asked, open while it is
// not, and half-open while one call finds out whether it is back. If there are several masters, the
// worst state counts.
func (s *Store) Breaker() string {
	worst := store.BreakerClosed
	for _, n := range s.topology.Masters() {
		switch state := n.Breaker(); state {
		case store.BreakerOpen:
			return state
		case store.BreakerHalfOpen:
			worst = state
		}
	}
	return worst
}

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats {
	lost, _ := s.outbox.Lost()
	calls, waited := uint64(0), time.Duration(0)
	for _, n := range s.topology.Masters() {
		calls += n.Calls()
		waited += n.Waited()
	}
	lent, loans := s.loans.Held(s.loans.Now())
	held := s.holds.ByZone()
	kept, keys := s.slots.Kept()
	for zone, n := range kept {
		held[zone] -= n
		lent[zone] += n
		loans[zone] += keys[zone]
	}
	return store.Stats{
		Held: held, Breaker: s.Breaker(), Lost: lost, DenyHits: s.cache.Hits(), Calls: calls, Waited: waited,
		Lent: lent, Loans: loans, Spared: s.spared.Load(),
	}
}

// Close implements [store.Store]. What is still held is given back, because nothing will renew
// it.
func (s *Store) Close() error {
	s.heartbeat.leave()
	s.once.Do(func() { close(s.quit) })
	<-s.done
	<-s.loansDone
	if s.lingers {
		return nil // the connections are needed
	}
	err := s.topology.Close()
	var broken net.Error // a connection that breaks as it is closed is closed too
	if errors.Is(err, redis.ErrClosed) || errors.As(err, &broken) {
		return nil
	}
	return err
}

// warnDamaged says that a stored state was damaged.
func (s *Store) warnDamaged(zone string) {
	if s.damaged.Allow() {
		s.logger().Warn("a state in redis is damaged or of another version: it counts as empty, and the next charge replaces it",
			zap.String("zone", zone), zap.String("key_prefix", s.keys.prefix))
	}
}

// warnUncounted says that Redis does not count this process among those that live.
func (s *Store) warnUncounted(cause error) {
	if s.uncounted.Allow() {
		s.logger().Warn("redis does not count this process, so on_store_error local may divide limits by a wrong number of instances",
			zap.String("key_prefix", s.keys.prefix), zap.Error(cause))
	}
}

// warnFar says that a Redis is too far away for the timeout.
func (s *Store) warnFar(n *node.Node) {
	if trip := n.Distance(); 3*trip > s.timeout && s.distant.Allow() {
		s.logger().Warn("redis is far away for the timeout: under load, requests that wait for each other may not be decided in time; use a nearer redis, or raise timeout to three times the round trip",
			zap.String("address", n.Address), zap.Duration("round_trip", trip), zap.Duration("timeout", s.timeout))
	}
}

// warnLost says that adjustments were given up, if there are more than were reported so far,
// and returns how many have been reported now. The last warning does not wait for its minute.
func (s *Store) warnLost(reported uint64, last bool) uint64 {
	lost, cause := s.outbox.Lost()
	if lost == reported || !last && !s.losing.Allow() {
		return reported
	}
	s.logger().Warn("refunds and late costs were given up because redis has not confirmed them: none is carried out twice",
		zap.Uint64("count", lost-reported), zap.String("key_prefix", s.keys.prefix), zap.Error(cause))
	return lost
}

var _ store.Observed = (*Store)(nil)
