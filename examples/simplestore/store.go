// Package simplestore is an example of a store that other people write: the shortest one that
// keeps the whole contract of [store.Store]. All states are in one map under one mutex, and
// the algorithms decide.
//
// It imports no more of this module than a store in another repository can: packages store and
// algorithms, and in its test store/storetest. To write a store, copy this package and replace
// the maps. The files store.go and limit.go are what every store needs, optional.go is what a
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
	bans   map[keyName]*state // with the numbers of store.Ban
}

// keyName names a key of a zone. The salt changes when a zone comes back after no config has
// named it for a while, and then its keys are new.
type keyName struct {
	zone string
	salt uint64
	key  string
}

// stateName names a state. A key has one for each family of limits: see [store.States].
type stateName struct {
	keyName
	states string
}

// state is what is kept for a key. The kind of the algorithm says which field is used.
type state struct {
	numbers algorithms.State  // of a Counter
	log     algorithms.Log    // of a Recorder
	leases  algorithms.Leases // of a Leaser
	begun   int64             // when it was new
	expires int64             // from then on, the state is the same as none
}

func keyOf(rule *store.Rule, key string) keyName { return keyName{rule.Zone(), rule.Salt(), key} }

// New makes a store for at most maxKeys states. It uses the machine's clock if now is nil. A
// test with a clock of its own renews no leases.
func New(maxKeys int, now func() int64) *Store {
	s := &Store{
		maxKeys: maxKeys, now: now, stop: func() {},
		states: make(map[stateName]*state), bans: make(map[keyName]*state),
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

// Take implements [store.Store]. Its order is that of the contract: decide all, then charge
// all or none.
func (s *Store) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, pass := s.now(), true
	for i := range checks {
		decisions[i] = s.decide(&checks[i], now)
		pass = pass && (decisions[i].Allowed || checks[i].Alone())
	}
	var charged []int
	for i := range checks {
		c, d := &checks[i], &decisions[i]
		switch {
		case !d.Allowed:
		case c.Peek, !pass && !c.Independent:
			// The cost would fit, but it is not charged. The decision describes the key as it is.
			delay := d.Delay
			if *d = s.limitOf(c, now).decide(0); c.Peek {
				d.Delay = delay
			}
		case c.Cost > 0 && s.hasRoom(c, now, len(charged)):
			charged = append(charged, i)
		case c.Cost > 0 && (!c.Independent || len(checks) == 1):
			return fmt.Errorf("%d keys are kept: %w", len(s.states), store.ErrFull) // nothing was charged yet
		}
	}
	for _, i := range charged {
		s.limitOf(&checks[i], now).charge(&checks[i])
		s.leases.Add(&checks[i], time.Now()) // does nothing unless the algorithm is a Leaser
	}
	return nil
}

// decide decides a check: by its limit, and by the ban that may follow refusals.
func (s *Store) decide(c *store.Check, now int64) algorithms.Decision {
	l := s.limitOf(c, now)
	if c.KeyRules == nil || c.KeyRules.Ban == nil {
		return l.decide(c.Cost)
	}
	ban := c.KeyRules.Ban
	refusals, known := s.bans[l.name.keyName]
	if !known {
		refusals = new(state)
	}
	banned := ban.Left(refusals.numbers, now) // for how many microseconds
	d, begins := l.decide(c.Cost), false
	if banned == 0 && !d.Allowed && !c.Peek && (known || len(s.bans) < s.maxKeys) {
		var life int64
		refusals.numbers, banned, life = ban.Refused(refusals.numbers, now)
		refusals.expires, begins = now+life, banned > 0
		s.bans[l.name.keyName] = refusals
	}
	if banned == 0 {
		return d
	}
	if d.Allowed {
		d = l.decide(0)
	}
	d.BanBegins = begins
	return d.Ban(banned)
}

// hasRoom reports whether a check can be charged after others.
func (s *Store) hasRoom(c *store.Check, now int64, others int) bool {
	_, kept := s.states[s.limitOf(c, now).name]
	return kept || len(s.states)+others < s.maxKeys
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
	l := &limit{store: s, algorithm: a.Rule.Algorithm(), params: prepared.Params, now: now, name: stateName{keyOf(a.Rule, a.Key), states.ID}}
	kept, known := s.states[l.name]
	if !known {
		kept = new(state)
	}
	switch algorithm := l.algorithm.(type) {
	case algorithms.Counter:
		before := kept.numbers
		if a.Delta < 0 && a.At < kept.begun {
			return false // it does not have the charge
		}
		kept.numbers = algorithm.Adjust(before, l.params, now, a.At, a.Turn, a.Delta)
		if changed = kept.numbers != before; !changed {
			return false
		}
	case algorithms.Recorder:
		if !known && a.Delta < 0 {
			return false // nothing is left to give back
		}
		algorithm.Adjust(&kept.log, l.params, now, a.At, a.Delta)
	case algorithms.Leaser:
		if a.Delta <= -a.Cost {
			s.leases.Remove(a.LeaseID) // no renewal is needed any more
		}
		if !kept.leases.GiveBack(a.LeaseID, -a.Delta) {
			return false
		}
	}
	l.keep(kept)
	return changed
}

// Reset implements [store.Store].
func (s *Store) Reset(_ context.Context, rule *store.Rule, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := keyOf(rule, key)
	delete(s.states, stateName{name, rule.States().ID})
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
		// Leases are always those of the rule: see [store.Override].
		l := limit{
			store: s, algorithm: c.Rule.Algorithm(), params: c.Rule.At(now).Params, now: now,
			name: stateName{keyOf(c.Rule, c.Key), c.Rule.States().ID},
		}
		if _, known := s.states[l.name]; known {
			l.charge(c) // to lend again under the same name renews
		}
	}
}

func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.states, func(_ stateName, kept *state) bool { return kept.expires <= now })
	maps.DeleteFunc(s.bans, func(_ keyName, kept *state) bool { return kept.expires <= now })
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.stop()
	return nil
}
