package memorystore

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ticket is a check that is being decided. The lock of its shard is held.
type ticket struct {
	check    *store.Check
	shard    *shard
	id       stateID            // where the state is, or will be kept
	shared   stateID            // where it is if the shard is full
	state    algorithms.State   // what to keep if the check is charged, for a Counter
	log      *algorithms.Log    // the same, for a Recorder
	leases   *algorithms.Leases // the same, for a Leaser
	params   algorithms.Params
	override string // see algorithms.Decision; not empty if params are those of an override
}

// prepare makes the ticket count in the states of the check's rule, and returns the number of the
// shard.
func (t *ticket) prepare(s *Store, c *store.Check) (n int) {
	t.check = c
	return t.countIn(s, c.Rule.States())
}

// countIn makes the ticket count in other states. They have the same shard, because the shard
// depends only on the key.
func (t *ticket) countIn(s *Store, states store.States) (n int) {
	n, t.id, t.shared = s.place(t.check.Rule, states, t.check.Key)
	t.shard = &s.shards[n]
	return n
}

// prefetch begins to read a Counter's state. With many keys, most of the time of a decision is one wait for
// memory, so the clock is read meanwhile. Measured in turn with and without it, a decision among 100,000 keys takes
// 7 % less (4 to 10 % in six runs), and among a million 6 % (4 to 7 %).
func (t *ticket) prefetch() {
	if t.check.Rule.Counter() != nil {
		t.shard.numbers.prefetch(t.id)
	}
}

// decide runs the algorithm on the kept state, and does not change that state.
func (t *ticket) decide(s *Store, now, cost int64, d *algorithms.Decision) {
	if a := t.check.Rule.Counter(); a != nil {
		t.state, *d = a.Take(find(t, s, &t.shard.numbers, now), t.params, now, cost)
	} else {
		t.decideOther(s, now, cost, d)
	}
	d.Override, d.At = t.override, now
}

// decideOther is decide for the algorithms that are no Counters. It is apart so that the others do not
// need its stack: a request whose stack has to grow pays for that.
func (t *ticket) decideOther(s *Store, now, cost int64, d *algorithms.Decision) {
	switch a := t.check.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		t.log = find(t, s, &t.shard.logs, now)
		if t.log == nil {
			t.log = new(algorithms.Log)
		}
		*d = a.Decide(t.log, t.params, now, cost)
	case algorithms.Leaser:
		t.leases = find(t, s, &t.shard.leases, now)
		if t.leases == nil {
			t.leases = new(algorithms.Leases)
		}
		*d = a.Decide(t.leases, t.params, now, cost)
	}
}

// find looks a state up. If the shard is full, the state of a new key is that of the bucket
// that it shares. Once there is room again, the key starts from the bucket's state, so that
// a client that was refused there does not start from zero.
func find[V any](t *ticket, s *Store, kept *table[V], now int64) V {
	if found := kept.get(t.id); found != nil {
		return found.value
	}
	if t.id != t.shared && t.shard.full(s.maxKeys()/shards, now) {
		t.id = t.shared
	}
	return kept.value(t.shared)
}

// charge keeps the state after a check that decide has allowed, until the decision's reset.
// After that the state is that of a new key.
func (t *ticket) charge(s *Store, now int64, d *algorithms.Decision) {
	expires := now + d.ResetAfter.Microseconds()
	if t.check.Rule.Counter() != nil {
		t.shard.keep(t.id, t.state, now, expires)
	} else {
		t.chargeOther(now, expires)
	}
	if t.id == t.shared {
		s.shared.Add(1)
	}
}

// chargeOther is charge for the algorithms that are no Counters.
func (t *ticket) chargeOther(now, expires int64) {
	switch a := t.check.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		if t.shard.logs.get(t.id) == nil {
			t.log = t.log.Clone()
		}
		a.Record(t.log, t.params, now, t.check.Cost)
		t.shard.logs.put(t.id, t.log, expires)
	case algorithms.Leaser:
		if t.shard.leases.get(t.id) == nil {
			t.leases = t.leases.Clone()
		}
		t.shard.lease(t.check, t.id, t.leases, t.params, now)
	}
}

// lease begins or renews a lease, and keeps the leases until the last one ends. That moment
// is computed for a limit of many slots, because a limit of 0 slots has no reset.
func (s *shard) lease(c *store.Check, id stateID, leases *algorithms.Leases, params algorithms.Params, now int64) {
	leaser := c.Rule.Algorithm().(algorithms.Leaser)
	leaser.Lease(leases, params, now, c.Cost, c.LeaseID)
	params[0] = algorithms.MaxEvents
	s.leases.put(id, leases, now+leaser.Decide(leases, params, now, 0).ResetAfter.Microseconds())
}

// adjust locks the shard and adjusts a charge. It reports whether that changed the state of a
// Counter.
func (t *ticket) adjust(s *Store, to *store.Adjustment) bool {
	t.shard.mu.Lock()
	defer t.shard.mu.Unlock()
	now := s.now()
	prepared, states := to.Rule.ChargedBy(to.Override, now)
	t.params = prepared.Params
	if to.Override != "" {
		t.countIn(s, states)
	}
	return t.adjustLocked(s, now, to)
}

// adjustLocked changes a charge, and keeps the state as charge does. A refund to a key
// without a state does not make one.
func (t *ticket) adjustLocked(s *Store, now int64, to *store.Adjustment) (changed bool) {
	params := t.params
	switch a := to.Rule.Algorithm().(type) {
	case algorithms.Counter:
		was := find(t, s, &t.shard.numbers, now)
		if begun := t.shard.begun[t.id].since; to.OfBefore(begun) {
			return false
		}
		if t.state = a.Adjust(was, params, now, to.At, to.Turn, to.Delta); t.state == was {
			return false
		}
		_, d := a.Take(t.state, params, now, 0)
		t.shard.keep(t.id, t.state, now, now+d.ResetAfter.Microseconds())
	case algorithms.Recorder:
		t.log = find(t, s, &t.shard.logs, now)
		switch exists := t.shard.logs.get(t.id) != nil; {
		case t.log == nil && to.Delta < 0:
			return false
		case t.log == nil:
			t.log = new(algorithms.Log)
		case !exists:
			t.log = t.log.Clone()
		}
		a.Adjust(t.log, params, now, to.At, to.Delta)
		params[0] = algorithms.MaxEvents // as in lease
		t.shard.logs.put(t.id, t.log, now+a.Decide(t.log, params, now, 0).ResetAfter.Microseconds())
	case algorithms.Leaser:
		t.shard.giveBack(to, t.id)
		t.shard.giveBack(to, t.shared)
	}
	return true
}

// giveBack ends a lease, if it is kept under that ID.
func (s *shard) giveBack(to *store.Adjustment, id stateID) {
	if kept := s.leases.get(id); kept != nil && kept.value.GiveBack(to.LeaseID, -to.Delta) && kept.value.Len() == 0 {
		s.leases.delete(id)
	}
}
