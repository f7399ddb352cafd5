package simplestore

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// keyName names a key of a zone. The salt changes when a zone comes back after no config has
// named it for a while, and then its keys are new.
type keyName struct {
	zone string
	salt uint64
	key  string
}

func keyOf(rule *store.Rule, key string) keyName { return keyName{rule.Zone(), rule.Salt(), key} }

// stateName names a state. A key has one for each family of limits: see [store.States].
type stateName struct {
	keyName
	states string
}

func nameOf(c *store.Check) stateName { return stateName{keyOf(c.Rule, c.Key), c.Rule.ID()} }

// state is what is kept for a key. The kind of the algorithm says which field is used.
type state struct {
	numbers algorithms.State  // of a Counter
	log     algorithms.Log    // of a Recorder
	leases  algorithms.Leases // of a Leaser
	begun   int64             // when it was new
	expires int64             // from then on, the state is the same as none
}

// refusals is what is kept for a key that may be banned.
type refusals struct {
	numbers algorithms.State // of store.Ban
	expires int64
}

// find returns what is kept, or a new state.
func (s *Store) find(name stateName) *state {
	if kept, ok := s.states[name]; ok {
		return kept
	}
	return new(state)
}

// look returns a check with what is kept of its key.
func (s *Store) look(c *store.Check, now int64) store.Asked {
	kept := s.find(nameOf(c))
	refused, known := s.bans[keyOf(c.Rule, c.Key)]
	return store.Asked{
		Check: c, Params: c.Rule.At(now).Params, State: kept.numbers, Log: &kept.log, Leases: &kept.leases,
		Ban: refused.numbers, NoBan: !known && len(s.bans) >= s.maxKeys,
	}
}

// charge charges what store.Decide has allowed.
func (s *Store) charge(a *store.Asked, now int64) {
	c, name := a.Check, nameOf(a.Check)
	kept := s.find(name)
	switch algorithm := c.Rule.Algorithm().(type) {
	case algorithms.Counter:
		kept.numbers = a.Next
	case algorithms.Recorder:
		algorithm.Record(&kept.log, a.Params, now, c.Cost, 0)
	case algorithms.Leaser:
		algorithm.Lease(&kept.leases, a.Params, now, c.Cost, c.LeaseID)
	}
	s.keep(name, kept, c.Rule, a.Params, now)
}

// keep keeps a changed state until its quota is full again.
func (s *Store) keep(name stateName, kept *state, rule *store.Rule, p algorithms.Params, now int64) {
	if _, known := s.states[name]; !known || kept.begun > now {
		kept.begun = now
	}
	s.states[name] = kept
	if rule.Counter() == nil {
		// A log and leases are also read by larger limits of the family, so they are kept
		// until their last entry ends, even under a limit of 0 events.
		p[0] = algorithms.MaxEvents
	}
	var d algorithms.Decision
	store.Decide(now, []store.Asked{{
		Check: &store.Check{Rule: rule}, Decision: &d, Params: p, State: kept.numbers, Log: &kept.log, Leases: &kept.leases,
	}})
	kept.expires = now + d.ResetAfter.Microseconds()
}
