package trial

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store is a memory store on a timeline, in which slots are taken for as long as requests hold them.
type Store struct {
	*memorystore.Store
	on      *clock.Timeline
	renewed int64
}

// NewStore returns a store for at most so many keys, or the usual number if that is 0, with a reference to it. Nobody has to release them.
func NewStore(on *clock.Timeline, maxKeys int) (*Store, *pool.Ref, error) {
	in, err := memorystore.New(memorystore.Options{MaxKeys: maxKeys, Now: on.Micros})
	if err != nil {
		return nil, nil, err
	}
	s := &Store{Store: in, on: on}
	return s, new(pool.Ref).InPlace(s), nil
}

// Take implements [store.Store].
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.renew()
	return s.Store.Take(ctx, checks, decisions)
}

// Sweep is that of the memory store, without what is still held.
func (s *Store) Sweep() {
	s.renew()
	s.Store.Sweep()
}

// renew renews the leases of slots. Only when somebody looks it matters whether they have ended.
func (s *Store) renew() {
	const every = int64(150 * time.Millisecond / time.Microsecond) // less than a sixth of the shortest lease
	if now := s.on.Micros(); now >= s.renewed+every {
		s.Renew()
		s.renewed = now
	}
}
