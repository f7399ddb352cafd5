package simplestore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What a store can do beyond [store.Store] are optional interfaces. Without one of them, the
// commands, metrics or options that need it say that the store does not have it.
var (
	_ store.Overrider = (*Store)(nil) // zones can have the option overrides
	_ store.Observed  = (*Store)(nil) // a metric for slots in use
	_ store.InProcess = (*Store)(nil) // no server is asked, and a metric for the number of keys
)

// override is what an operator has set for a key.
type override struct {
	*store.PreparedOverride
	expires int64 // 0: never
}

// overrideOf returns the override of a key. It is the zero override if the key has none.
func (s *Store) overrideOf(key keyName, now int64) override {
	o := s.overrides[key]
	if o.expires != 0 && o.expires <= now {
		return override{}
	}
	return o
}

// Set implements [store.Overrider].
func (s *Store) Set(_ context.Context, rule *store.Rule, key string, to store.Override) error {
	prepared, err := rule.PrepareOverride(to)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := override{PreparedOverride: prepared}
	if prepared.For > 0 {
		o.expires = s.now() + prepared.For.Microseconds()
	}
	s.overrides[keyOf(rule, key)] = o
	return nil
}

// Get implements [store.Overrider].
func (s *Store) Get(_ context.Context, rule *store.Rule, key string) (store.Override, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	o := s.overrideOf(keyOf(rule, key), now)
	if o.PreparedOverride == nil {
		return store.Override{}, nil
	}
	shown := o.Override
	if o.expires != 0 {
		shown.For = time.Duration(o.expires-now) * time.Microsecond
	}
	return shown, nil
}

// Clear implements [store.Overrider].
func (s *Store) Clear(_ context.Context, rule *store.Rule, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.overrides, keyOf(rule, key))
	return nil
}

// Unban implements [store.Overrider].
func (s *Store) Unban(_ context.Context, rule *store.Rule, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := keyOf(rule, key)
	if o := s.overrides[name]; o.PreparedOverride != nil && o.Kind == store.KindBanned {
		delete(s.overrides, name)
	}
	delete(s.bans, name)
	return nil
}

// CountKeys implements [store.InProcess].
func (s *Store) CountKeys(rules []*store.Rule) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	zones := make(map[keyName]int64)
	for name := range s.states {
		zones[keyName{zone: name.zone, salt: name.salt}]++
	}
	counts := make([]int64, len(rules))
	for i, rule := range rules {
		zone := keyOf(rule, "")
		counts[i] = zones[zone]
		delete(zones, zone) // the first rule of a zone has its number
	}
	return counts
}

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats { return store.Stats{InUse: s.leases.ByZone()} }

// Examine implements [store.Observed].
func (s *Store) Examine(context.Context) store.Examination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Examination{Keys: len(s.states)}
}
