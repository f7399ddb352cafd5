// Package simplestore is an example of a store that other people write: the shortest one that
// keeps the whole contract of [store.Store]. All states are in one map under one mutex, and
// [store.Decide] decides.
//
// It imports no more of this module than a store in another repository can: packages store and
// algorithms, and in its test store/storetest. To write a store, copy this package and replace
// the maps. The files store.go and state.go are what every store needs, optional.go is what a
// store can leave out, and module.go makes it a module of Caddy.
package simplestore

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store implements [store.Store], and the optional interfaces in optional.go.
type Store struct {
	maxKeys int
	now     func() int64 // the clock, in microseconds since 1970
	stop    func()       // stops the renewal of leases
	leases  store.Leases // the leases to renew

	mu     sync.Mutex
	states map[stateName]*state
	bans   map[keyName]refusals
}

// New makes a store for at most maxKeys states. It uses the machine's clock if now is nil. A
// test with a clock of its own renews no leases.
func New(maxKeys int, now func() int64) *Store {
	s := &Store{
		maxKeys: maxKeys, now: now, stop: func() {},
		states: make(map[stateName]*state), bans: make(map[keyName]refusals),
	}
	if now == nil {
		// The wall clock can be set while Caddy runs; time.Since is monotonic.
		start := time.Now()
		s.now = func() int64 { return start.UnixMicro() + time.Since(start).Microseconds() }
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		go s.maintain(ctx)
	}
	return s
}

// Take implements [store.Store]. It looks up what is kept, has [store.Decide] decide, and keeps
// what changes. If there is no room for a charge, nothing changes.
func (s *Store) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	asked := make([]store.Asked, len(checks))
	for i := range checks {
		asked[i] = s.look(&checks[i], now)
		asked[i].Decision = &decisions[i]
	}
	store.Decide(now, asked)
	room := s.maxKeys - len(s.states)
	for i := range asked {
		if !asked[i].Charged || s.states[nameOf(&checks[i])] != nil {
			continue
		}
		if room--; room < 0 {
			if !checks[i].Independent || len(checks) == 1 {
				return fmt.Errorf("%d keys are kept: %w", len(s.states), store.ErrFull)
			}
			asked[i].Charged = false
		}
	}
	for i := range asked {
		a, c := &asked[i], &checks[i]
		if a.BanLife > 0 {
			s.bans[keyOf(c.Rule, c.Key)] = refusals{a.NextBan, now + a.BanLife}
		}
		if a.Charged {
			s.charge(a, now)
			s.leases.Add(c, time.Now()) // does nothing unless the algorithm is a Leaser
		}
	}
	return nil
}

// Adjust implements [store.Store], at once.
func (s *Store) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		changed := s.adjust(&adjustments[i])
		if done := adjustments[i].Done; done != nil {
			done(changed)
		}
	}
}

// adjust changes the state that was charged. It reports whether it has changed the state of a Counter.
func (s *Store) adjust(a *store.Adjustment) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	prepared, states := a.Rule.ChargedBy(a.Override, now)
	name := stateName{keyOf(a.Rule, a.Key), states.ID}
	kept := s.find(name)
	switch algorithm := a.Rule.Algorithm().(type) {
	case algorithms.Counter:
		before := kept.numbers
		if a.OfBefore(kept.begun) {
			return false // it does not have the charge
		}
		kept.numbers = algorithm.Adjust(before, prepared.Params, now, a.At, a.Turn, a.Delta)
		if changed = kept.numbers != before; !changed {
			return false
		}
	case algorithms.Recorder:
		if kept.begun == 0 && a.Delta < 0 {
			return false // nothing is left to give back
		}
		algorithm.Adjust(&kept.log, prepared.Params, now, a.At, a.Delta)
	case algorithms.Leaser:
		if a.Delta <= -a.Cost {
			s.leases.Remove(a.LeaseID) // no renewal is needed any more
		}
		if !kept.leases.GiveBack(a.LeaseID, -a.Delta) {
			return false
		}
	}
	s.keep(name, kept, a.Rule, prepared.Params, now)
	return changed
}

// Reset implements [store.Store].
func (s *Store) Reset(_ context.Context, rule *store.Rule, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := keyOf(rule, key)
	delete(s.states, stateName{name, rule.ID()})
	delete(s.bans, name)
	return nil
}

// maintain renews the leases of this process, and drops states that are the same as none.
func (s *Store) maintain(ctx context.Context) {
	renewal, sweep := time.NewTicker(store.RenewInterval), time.NewTicker(time.Minute)
	defer renewal.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-renewal.C:
			s.renew()
		case <-sweep.C:
			s.sweep()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) renew() {
	s.mu.Lock() // first, or a lease that is given back meanwhile would be lent again
	defer s.mu.Unlock()
	due := s.leases.Due(time.Now())
	for i := range due {
		c, now := &due[i], s.now()
		if s.states[nameOf(c)] != nil { // leases are always those of the rule: see [store.Override]
			a := s.look(c, now)
			s.charge(&a, now) // to lend again under the same name renews
		}
	}
}

func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.states, func(_ stateName, kept *state) bool { return kept.expires <= now })
	maps.DeleteFunc(s.bans, func(_ keyName, kept refusals) bool { return kept.expires <= now })
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.stop()
	return nil
}
