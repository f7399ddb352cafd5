package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// begin is when a case begins, unless it says otherwise: at the start of a day, hour and year.
var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// world is the world of one case.
type world struct {
	*engine
	clock.Timeline
	base      string    // the beginning of URLs that are only a path; empty if the file has none
	common    *pool.Ref // the store of all instances; nil before it is needed, and if they share nothing
	instances []*instance
	number    int  // of instances
	down      bool // the store does not answer
	detailed  bool // what happens is described in words
	refs      []*pool.Ref
	stores    []*memorystore.Store
}

// instance is one Caddy of a fleet.
type instance struct{ main, local *pool.Ref } // local is nil if main is always up

// stand is in place of the store of a config.
type stand struct {
	*memorystore.Store
	world *world
	main  bool // it can be down
}

var errDown = errors.New("the case says that the store is down")

// Take implements [store.Store].
func (s *stand) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if s.main && s.world.down {
		return errDown
	}
	return s.Store.Take(ctx, checks, decisions)
}

// Instances implements [store.Fleet].
func (s *stand) Instances() int { return s.world.number }

// Identity implements [store.Backend].
func (s *stand) Identity() (string, error) { return fmt.Sprintf("test:%p", s), nil }

// Open implements [store.Backend].
func (s *stand) Open() (store.Store, error) { return s, nil }

// newWorld returns a world in which all limits are unused.
func (e *engine) newWorld(base string, detailed bool) *world {
	w := &world{engine: e, base: base, number: 1, detailed: detailed}
	w.MoveTo(begin.UnixMicro())
	return w
}

// close releases the stores.
func (w *world) close() {
	for _, ref := range w.refs {
		_ = ref.Release()
	}
}

// open opens a store. The main one can be down.
func (w *world) open(main bool) (*pool.Ref, error) {
	s, err := memorystore.New(memorystore.Options{Now: w.Micros})
	if err != nil {
		return nil, err
	}
	ref, err := pool.AcquireOn(&w.Timeline, &stand{Store: s, world: w, main: main})
	if err == nil {
		w.stores, w.refs = append(w.stores, s), append(w.refs, ref)
	}
	return ref, err
}

// instance returns an instance by its number, from 1, or 0 for the first.
func (w *world) instance(number int) (_ *instance, err error) {
	number = max(1, number)
	if number > w.number {
		return nil, fmt.Errorf("there is no instance %d: write instances %d before", number, number)
	}
	for len(w.instances) < number {
		made := &instance{main: w.common}
		if made.main == nil {
			if made.main, err = w.open(w.shared); err != nil {
				return nil, err
			}
		}
		if w.shared {
			w.common = made.main
			if made.local, err = w.open(false); err != nil {
				return nil, err
			}
		}
		w.instances = append(w.instances, made)
	}
	return w.instances[number-1], nil
}

// hold lets time pass while a request runs, and renews its slots.
func (w *world) hold(d time.Duration) {
	const every = 150 * time.Millisecond // less than a sixth of the shortest lease
	for left := d; left > 0; left -= every {
		w.Sleep(min(left, every))
		for _, s := range w.stores {
			s.Renew()
		}
	}
}
