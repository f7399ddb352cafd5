// Package pool keeps open stores and the states of zones, which outlive a config, for as long as
// a handler of any config uses them.
package pool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The pools count the uses of each entry.
var (
	stores     = caddy.NewUsagePool() // by identity
	zoneStates = caddy.NewUsagePool() // by [ZoneKey]
)

// InUse returns how many stores are open and how many zones have states, over all configs
// that are alive.
func InUse() (openStores, zones int) { return entries(stores), entries(zoneStates) }

func entries(of *caddy.UsagePool) (n int) {
	of.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// Store is an open store. It is closed when the pool has released it and the last session has
// ended.
type Store struct {
	store.Store
	Health  *Health
	users   atomic.Int64    // sessions, and one for the pool
	Remote  bool            // the store asks a server
	Latency stats.Histogram // of the server, if the store is remote
	Lately  stats.Minute    // of that latency
	Turns   *turns.Queues   // nil if nobody leaves a queue

	probing  sync.Mutex
	answered bool // a probe, since the store was opened
}

// Destruct implements [caddy.Destructor].
func (s *Store) Destruct() error { return s.Release() }

// Acquire keeps the store open until Release is called. It reports whether the store was still
// open.
func (s *Store) Acquire() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends what Acquire has begun.
func (s *Store) Release() error {
	if s.users.Add(-1) == 0 {
		openStores.Delete(s)
		return s.Close()
	}
	return nil
}

// Take asks the store, and measures how long a remote one takes to answer.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if !s.Remote {
		return s.Store.Take(ctx, checks, decisions)
	}
	start := time.Now()
	err := s.Store.Take(ctx, checks, decisions)
	if latency := time.Since(start); latency >= minRoundTrip {
		s.Latency.Observe(latency)
	}
	return err
}

// minRoundTrip is less than the round trip to any server. A call that takes less was answered
// from the deny cache.
const minRoundTrip = 10 * time.Microsecond

// Ref is a handler's reference to a store.
type Ref struct {
	Backend  store.Backend
	ID       string // the store's identity
	Store    *Store
	clock    clock.Timers
	released sync.Once
}

// Acquire returns a reference to the backend's store, and opens the store if it is the first one.
func Acquire(backend store.Backend) (*Ref, error) { return AcquireOn(clock.System{}, backend) }

// AcquireOn is [Acquire] with the clock by which requests leave the store's queues.
func AcquireOn(c clock.Timers, backend store.Backend) (*Ref, error) {
	id, err := backend.Identity()
	if err != nil {
		return nil, err
	}
	value, _, err := stores.LoadOrNew(id, func() (caddy.Destructor, error) {
		s, err := open(backend)
		if err != nil {
			return nil, err
		}
		_, inProcess := s.(store.InProcess)
		opened := newStore(s, Describe(backend))
		opened.Remote, opened.Turns = !inProcess, turns.New(c, opened)
		openStores.Store(opened, nil)
		return opened, nil
	})
	if err != nil {
		return nil, err
	}
	return &Ref{Backend: backend, ID: id, Store: value.(*Store), clock: c}, nil
}

// InPlace returns a reference to a store instead of that of r, whose queues nobody leaves. The store is never closed, and the
// reference does not have to be released.
func (r *Ref) InPlace(s store.Store) *Ref {
	return &Ref{Backend: r.Backend, ID: r.ID, Store: newStore(s, "")}
}

// newStore returns a store in use that has a name in the log.
func newStore(s store.Store, name string) *Store {
	opened := &Store{Store: s, Health: newHealth(name)}
	opened.users.Store(1)
	return opened
}

// open opens a store. It turns a panic into an error, because a panic would leave the pool locked
// forever.
func open(backend store.Backend) (s store.Store, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("opening %s: panic: %v", Describe(backend), reason)
		}
	}()
	return backend.Open()
}

// Release releases the store. A second call does nothing.
func (r *Ref) Release() (err error) {
	r.released.Do(func() {
		if _, err = stores.Delete(r.ID); err != nil {
			err = fmt.Errorf("closing store: %w", err)
		}
	})
	return err
}

// Networks returns the networks of a zone that have overrides, or nil if the store keeps none.
func (r *Ref) Networks(rule *store.Rule) *store.Networks {
	if s, ok := r.Store.Store.(interface {
		Networks(rule *store.Rule) *store.Networks
	}); ok {
		return s.Networks(rule)
	}
	return nil
}

// Instances returns the number of instances that share a limit while each of them counts by itself: as
// many as are configured, or else as the store has last seen.
func (r *Ref) Instances(configured int) int {
	if configured > 0 {
		return configured
	}
	if fleet, ok := r.Store.Store.(store.Fleet); ok {
		return fleet.Instances()
	}
	return 1
}

// Session is a request's use of a store, which keeps the store open until End.
type Session struct {
	*Store
	ref *Ref // acquired for this request alone; nil if the handler's reference was still valid
}

// Begin begins a session. If a request outlives its config, the store may be closed: then the
// session opens it again for this request.
func (r *Ref) Begin() (Session, error) {
	if r.Store.Acquire() {
		return Session{Store: r.Store}, nil
	}
	ref, err := AcquireOn(r.clock, r.Backend)
	if err != nil {
		return Session{}, err
	}
	return Session{Store: ref.Store, ref: ref}, nil
}

// End ends the session. It must be called once. One without a store has nothing to end.
func (s Session) End() {
	switch {
	case s.ref != nil:
		_ = s.ref.Release()
	case s.Store != nil:
		_ = s.Release()
	}
}

// ZoneState is what a zone keeps across reloads, until no config names the zone any more. The
// salt is part of the zone's keys in a memory store, so that a later zone of the same name starts
// from zero.
type ZoneState struct {
	Salt     uint64
	Counters stats.Counters
}

// ZoneKey returns the key of a zone's state in zoneStates.
func ZoneKey(storeID, zone string) string { return storeID + "\x00" + zone }

// AcquireZone returns the state of a zone, and makes it if no config has named the zone yet.
func AcquireZone(key string) *ZoneState {
	value, _ := zoneStates.LoadOrStore(key, &ZoneState{Salt: rand.Uint64(), Counters: stats.Counters{Keys: topk.New(stats.TopSpan)}})
	return value.(*ZoneState)
}

// ReleaseZone releases the state of a zone, which is dropped with the last use.
func ReleaseZone(key string) { _, _ = zoneStates.Delete(key) }

// Describe returns the name of a backend's store in errors and logs.
func Describe(backend store.Backend) string {
	switch b := backend.(type) {
	case fmt.Stringer:
		return b.String()
	case caddy.Module:
		return "store " + b.CaddyModule().ID.Name()
	}
	return "store"
}
