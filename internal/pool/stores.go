// Package pool keeps what outlives a config, for as long as a handler of some config uses it:
// open stores, and the counters of zones.
package pool

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What outlives a config stands in two pools, each entry for as long as a handler of
// some config uses it: stores by their identity, and generations of zones by store and
// name.
var (
	Stores     = caddy.NewUsagePool()
	ZoneStates = caddy.NewUsagePool()
)

// Store is an open store. It is closed when the pool has let go of it and the last
// call under way is done.
type Store struct {
	store.Store
	Health  *Health
	Users   atomic.Int64    // the pool is one
	Remote  bool            // it asks a server
	Latency stats.Histogram // of a remote one
	Turns   *turns.Queues
}

// Destruct implements [caddy.Destructor].
func (s *Store) Destruct() error { return s.release() }

// acquire keeps the store open until release, unless it is closed already.
func (s *Store) acquire() bool {
	for {
		n := s.Users.Load()
		if n == 0 {
			return false
		}
		if s.Users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// keepOpen keeps the store open until its result is called. It returns nil if the store is closed.
func (s *Store) keepOpen() (release func()) {
	if !s.acquire() {
		return nil
	}
	return func() { _ = s.release() }
}

func (s *Store) release() error {
	if s.Users.Add(-1) == 0 {
		openStores.Delete(s)
		return s.Close()
	}
	return nil
}

// Ref is a handler's use of a store.
type Ref struct {
	Backend store.Backend
	ID      string
	Store   *Store
	ended   sync.Once
}

// Acquire opens the backend's store, or joins those who use it already.
func Acquire(backend store.Backend) (*Ref, error) {
	id, err := backend.Identity()
	if err != nil {
		return nil, err
	}
	return acquireAs(id, backend)
}

func acquireAs(id string, backend store.Backend) (*Ref, error) {
	value, _, err := Stores.LoadOrNew(id, func() (caddy.Destructor, error) {
		s, err := open(backend)
		if err != nil {
			return nil, err
		}
		_, inProcess := s.(store.InProcess)
		opened := &Store{Store: s, Health: newHealth(Describe(backend)), Remote: !inProcess}
		opened.Users.Store(1)
		opened.Turns = turns.New(opened.keepOpen)
		openStores.Store(opened, nil)
		return opened, nil
	})
	if err != nil {
		return nil, err
	}
	return &Ref{Backend: backend, ID: id, Store: value.(*Store)}, nil
}

// open makes an error of a panic, which would leave the pool locked for ever.
func open(backend store.Backend) (s store.Store, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("opening %s: panic: %v", Describe(backend), reason)
		}
	}()
	return backend.Open()
}

// Release gives the store back; a second time it does nothing.
func (l *Ref) Release() (err error) {
	l.ended.Do(func() {
		if _, err = Stores.Delete(l.ID); err != nil {
			err = fmt.Errorf("closing store: %w", err)
		}
	})
	return err
}

// Session is a request's use of a store: it stays open until end.
type Session struct {
	*Store
	ref *Ref // acquired for this request alone
}

// Begin starts a use. A request that outlives its config may find the store closed;
// then it acquires it anew for itself.
func (l *Ref) Begin() (Session, error) {
	if l.Store.acquire() {
		return Session{Store: l.Store}, nil
	}
	own, err := acquireAs(l.ID, l.Backend)
	if err != nil {
		return Session{}, err
	}
	return Session{own.Store, own}, nil
}

func (u Session) End() {
	if u.ref != nil {
		_ = u.ref.Release()
	} else {
		_ = u.release()
	}
}

// ZoneState sets a zone's states in this process's memory apart from those of an
// earlier zone of the same name: when no config names a zone any more, what it counted
// is forgotten.
type ZoneState struct {
	Salt     uint64
	Counters stats.Counters
}

func ZoneKey(storeID, zone string) string { return storeID + "\x00" + zone }

func AcquireZone(key string) *ZoneState {
	value, _ := ZoneStates.LoadOrStore(key, &ZoneState{Salt: rand.Uint64(), Counters: stats.Counters{Keys: topk.New(stats.TopSpan)}})
	return value.(*ZoneState)
}

func ReleaseZone(key string) { _, _ = ZoneStates.Delete(key) }

// Describe is what errors call a store.
func Describe(backend store.Backend) string {
	switch b := backend.(type) {
	case fmt.Stringer:
		return b.String()
	case caddy.Module:
		return "store " + b.CaddyModule().ID.Name()
	}
	return "store"
}
