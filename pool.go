package caddyratelimit

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
	stores      = caddy.NewUsagePool()
	generations = caddy.NewUsagePool()
)

// shared is an open store. It is closed when the pool has let go of it and the last
// call under way is done.
type shared struct {
	store.Store
	health  *health
	users   atomic.Int64    // the pool is one
	remote  bool            // it asks a server
	latency stats.Histogram // of a remote one
	turns   *turns.Queues
}

// Destruct implements [caddy.Destructor].
func (s *shared) Destruct() error { return s.release() }

// acquire keeps the store open until release, unless it is closed already.
func (s *shared) acquire() bool {
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

// hold keeps the store open until its result is called. It returns nil if the store is closed.
func (s *shared) hold() (release func()) {
	if !s.acquire() {
		return nil
	}
	return func() { _ = s.release() }
}

func (s *shared) release() error {
	if s.users.Add(-1) == 0 {
		openStores.Delete(s)
		return s.Close()
	}
	return nil
}

// lease is a handler's use of a store.
type lease struct {
	backend store.Backend
	id      string
	shared  *shared
	ended   sync.Once
}

// borrow opens the backend's store, or joins those who use it already.
func borrow(backend store.Backend) (*lease, error) {
	id, err := backend.Identity()
	if err != nil {
		return nil, err
	}
	return borrowAs(id, backend)
}

func borrowAs(id string, backend store.Backend) (*lease, error) {
	value, _, err := stores.LoadOrNew(id, func() (caddy.Destructor, error) {
		s, err := open(backend)
		if err != nil {
			return nil, err
		}
		_, inProcess := s.(store.InProcess)
		opened := &shared{Store: s, health: newHealth(describe(backend)), remote: !inProcess}
		opened.users.Store(1)
		opened.turns = turns.New(opened.hold)
		openStores.Store(opened, nil)
		return opened, nil
	})
	if err != nil {
		return nil, err
	}
	return &lease{backend: backend, id: id, shared: value.(*shared)}, nil
}

// open makes an error of a panic, which would leave the pool locked for ever.
func open(backend store.Backend) (s store.Store, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("opening %s: panic: %v", describe(backend), reason)
		}
	}()
	return backend.Open()
}

// giveBack ends the lease; a second time it does nothing.
func (l *lease) giveBack() (err error) {
	l.ended.Do(func() {
		if _, err = stores.Delete(l.id); err != nil {
			err = fmt.Errorf("closing store: %w", err)
		}
	})
	return err
}

// use is a request's use of a store: it stays open until end.
type use struct {
	*shared
	own *lease // borrowed for this request alone
}

// begin starts a use. A request that outlives its config may find the store closed;
// then it borrows it anew for itself.
func (l *lease) begin() (use, error) {
	if l.shared.acquire() {
		return use{shared: l.shared}, nil
	}
	own, err := borrowAs(l.id, l.backend)
	if err != nil {
		return use{}, err
	}
	return use{own.shared, own}, nil
}

func (u use) end() {
	if u.own != nil {
		_ = u.own.giveBack()
	} else {
		_ = u.release()
	}
}

// generation sets a zone's states in this process's memory apart from those of an
// earlier zone of the same name: when no config names a zone any more, what it counted
// is forgotten.
type generation struct {
	salt  uint64
	tally stats.Counters
}

func generationKey(storeID, zone string) string { return storeID + "\x00" + zone }

func joinGeneration(key string) *generation {
	value, _ := generations.LoadOrStore(key, &generation{salt: rand.Uint64(), tally: stats.Counters{Keys: topk.New(stats.Lately)}})
	return value.(*generation)
}

func leaveGeneration(key string) { _, _ = generations.Delete(key) }

// describe is what errors call a store.
func describe(backend store.Backend) string {
	switch b := backend.(type) {
	case fmt.Stringer:
		return b.String()
	case caddy.Module:
		return "store " + b.CaddyModule().ID.Name()
	}
	return "store"
}
