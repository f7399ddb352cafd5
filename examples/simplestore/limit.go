package simplestore

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// limit is the limit of a check, and the state in which it counts.
type limit struct {
	store     *Store
	algorithm algorithms.Algorithm
	params    algorithms.Params
	name      stateName
	now       int64
}

// limitOf returns the limit of a check.
func (s *Store) limitOf(c *store.Check, now int64) *limit {
	return &limit{
		store: s, algorithm: c.Rule.Algorithm(), params: c.Rule.At(now).Params, now: now,
		name: stateName{keyOf(c.Rule, c.Key), c.Rule.States().ID},
	}
}

// state returns what is kept. For a key that is not kept, it is a new state.
func (l *limit) state() *state {
	if kept, ok := l.store.states[l.name]; ok {
		return kept
	}
	return new(state)
}

// decide asks the algorithm, and changes nothing.
func (l *limit) decide(cost int64) (d algorithms.Decision) {
	kept := l.state()
	switch a := l.algorithm.(type) {
	case algorithms.Counter:
		_, d = a.Take(kept.numbers, l.params, l.now, cost)
	case algorithms.Recorder:
		d = a.Decide(&kept.log, l.params, l.now, cost)
	case algorithms.Leaser:
		d = a.Decide(&kept.leases, l.params, l.now, cost)
	}
	d.At = l.now
	return d
}

// charge charges what decide has allowed.
func (l *limit) charge(c *store.Check) {
	kept := l.state()
	switch a := l.algorithm.(type) {
	case algorithms.Counter:
		kept.numbers, _ = a.Take(kept.numbers, l.params, l.now, c.Cost)
	case algorithms.Recorder:
		a.Record(&kept.log, l.params, l.now, c.Cost, 0)
	case algorithms.Leaser:
		a.Lease(&kept.leases, l.params, l.now, c.Cost, c.LeaseID)
	}
	l.keep(kept)
}

// keep keeps a changed state until its quota is full again.
func (l *limit) keep(kept *state) {
	if _, known := l.store.states[l.name]; !known || kept.begun > l.now {
		kept.begun = l.now
	}
	l.store.states[l.name] = kept
	measure := *l
	if _, counts := l.algorithm.(algorithms.Counter); !counts {
		// A log and leases are also read by larger limits of the family, so they are kept
		// until their last entry ends, even under a limit of 0 events.
		measure.params[0] = algorithms.MaxEvents
	}
	kept.expires = l.now + measure.decide(0).ResetAfter.Microseconds()
}
