package memorystore

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ticket is a check on its way through its shard, whose lock is held.
type ticket struct {
	check  *store.Check
	shard  *shard
	id     stateID          // where the state is kept, or will be
	shared stateID          // where it is if there is no room
	state  algorithms.State // to keep if the check is charged
	log    *algorithms.Log  // the same, for a Recorder
	leases *algorithms.Leases
	params algorithms.Params
	own    string // the key's own limit, if that is what params are of
}

// ticket is the ticket of a check by the rule's limit.
func (s *Store) ticket(c *store.Check) (t ticket, n int) {
	t.check = c
	n = t.place(s, c.Rule.States())
	return t, n
}

// place has the ticket count in some states. The shard is that of the key, whichever they
// are.
func (t *ticket) place(s *Store, states store.States) (n int) {
	n, t.id, t.shared = s.place(t.check.Rule, states, t.check.Key)
	t.shard = &s.shards[n]
	return n
}

// decide runs the algorithm on what is kept, and changes nothing that is kept.
func (t *ticket) decide(s *Store, now, cost int64) (d algorithms.Decision) {
	switch a := t.check.Rule.Algorithm().(type) {
	case algorithms.Counter:
		t.state, d = a.Take(find(t, s, t.shard.numbers, now).state, t.params, now, cost)
	case algorithms.Recorder:
		t.log = find(t, s, t.shard.logs, now).log
		if t.log == nil {
			t.log = new(algorithms.Log)
		}
		d = a.Decide(t.log, t.params, now, cost)
	case algorithms.Lender:
		t.leases = find(t, s, t.shard.leases, now).leases
		if t.leases == nil {
			t.leases = new(algorithms.Leases)
		}
		d = a.Decide(t.leases, t.params, now, cost)
	}
	d.Override = t.own
	return d
}

// find looks a state up. Without room a new key's state is that of the bucket it
// shares; and once there is room again it starts from the bucket's, so that nobody who
// was refused there starts afresh.
func find[V any](t *ticket, s *Store, kept map[stateID]V, now int64) V {
	v, ok := kept[t.id]
	if ok || t.id == t.shared {
		return v
	}
	if t.shard.full(s.maxKeys()/shards, now) {
		t.id = t.shared
	}
	return kept[t.shared]
}

// charge keeps what decide has allowed, until the decision's reset: from then on the
// state is worth nothing.
func (t *ticket) charge(s *Store, now int64, d algorithms.Decision) {
	expires := now + d.ResetAfter.Microseconds()
	switch a := t.check.Rule.Algorithm().(type) {
	case algorithms.Counter:
		t.shard.numbers[t.id] = number{state: t.state, expires: expires}
	case algorithms.Recorder:
		if _, own := t.shard.logs[t.id]; !own {
			t.log = t.log.Clone()
		}
		a.Record(t.log, t.params, now, t.check.Cost)
		t.shard.logs[t.id] = record{log: t.log, expires: expires}
	case algorithms.Lender:
		if _, own := t.shard.leases[t.id]; !own {
			t.leases = t.leases.Clone()
		}
		t.shard.lend(t.check, t.id, t.leases, t.params, now)
	}
	if t.id == t.shared {
		s.shared.Add(1)
	}
}

// lend lends, or renews. Leases are kept until the last one ends, also while a limit of no
// slots at all has nothing that could come back.
func (s *shard) lend(c *store.Check, id stateID, leases *algorithms.Leases, params algorithms.Params, now int64) {
	lender := c.Rule.Algorithm().(algorithms.Lender)
	lender.Lend(leases, params, now, c.Cost, c.Hold)
	params[0] = algorithms.MaxEvents
	s.leases[id] = lent{leases: leases, expires: now + lender.Decide(leases, params, now, 0).ResetAfter.Microseconds()}
}

// settle locks the shard and corrects. It reports whether that changed a Counter's state.
func (t *ticket) settle(s *Store, r *store.Adjustment) bool {
	t.shard.mu.Lock()
	defer t.shard.mu.Unlock()
	now := s.now()
	by, states := r.Rule.ChargedBy(r.Override, now)
	t.params = by.Params
	if r.Override != "" {
		t.place(s, states)
	}
	return t.correct(s, now, r)
}

// correct changes what was charged, and keeps it as charge does. What is given back where
// nothing is kept makes no key.
func (t *ticket) correct(s *Store, now int64, r *store.Adjustment) (changed bool) {
	params := t.params
	switch a := r.Rule.Algorithm().(type) {
	case algorithms.Counter:
		was := find(t, s, t.shard.numbers, now).state
		if t.state = a.Adjust(was, params, now, r.At, r.Turn, r.Delta); t.state == was {
			return false
		}
		_, d := a.Take(t.state, params, now, 0)
		t.shard.numbers[t.id] = number{state: t.state, expires: now + d.ResetAfter.Microseconds()}
	case algorithms.Recorder:
		t.log = find(t, s, t.shard.logs, now).log
		switch _, own := t.shard.logs[t.id]; {
		case t.log == nil && r.Delta < 0:
			return false
		case t.log == nil:
			t.log = new(algorithms.Log)
		case !own:
			t.log = t.log.Clone()
		}
		a.Adjust(t.log, params, now, r.At, r.Delta)
		params[0] = algorithms.MaxEvents // as for leases
		t.shard.logs[t.id] = record{log: t.log, expires: now + a.Decide(t.log, params, now, 0).ResetAfter.Microseconds()}
	case algorithms.Lender:
		t.shard.release(r, t.id)
		t.shard.release(r, t.shared)
	}
	return true
}

// release ends what is held there.
func (s *shard) release(r *store.Adjustment, id stateID) {
	if kept, ok := s.leases[id]; ok && kept.leases.GiveBack(r.Hold, -r.Delta) && kept.leases.Len() == 0 {
		delete(s.leases, id)
	}
}
