package memorystore

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ticket is where a check that is being decided counts. The lock of its shard is held.
type ticket struct {
	check  *store.Check
	shard  *shard
	id     stateID // where the state is, or will be kept
	shared stateID // where it is if the shard is full
	rules  stateID // where its override and the state of its ban are, if it may have them
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

// look reads what there is of the key.
func (t *ticket) look(s *Store, now int64, a *store.Asked) {
	c := t.check
	a.Check, a.Params = c, c.Rule.At(now).Params
	if c.KeyRules != nil {
		t.lookAtRules(s, now, a)
	}
	if c.Rule.Counter() != nil {
		a.State = find(t, s, &t.shard.numbers, now)
	} else {
		t.lookAtOther(s, now, a)
	}
}

// lookAtRules reads the override and the bans of the key.
func (t *ticket) lookAtRules(s *Store, now int64, a *store.Asked) {
	_, t.rules = s.locate(t.check.Rule, t.check.Key)
	if o, ok := t.shard.overrides[t.rules]; ok && t.check.KeyRules.Overrides && !o.expired(now) {
		left := o.expires - now
		if o.expires == 0 {
			left = -1
		}
		if a.Overridden(o.prepared, left) {
			t.countIn(s, o.prepared.States(t.check.Rule.States()))
		}
	}
	if t.check.KeyRules.Ban != nil {
		a.Ban = t.shard.bans.value(t.rules)
		a.NoBan = t.shard.bans.get(t.rules) == nil && t.shard.fullOfBans(s.maxKeys()/shards, now)
	}
}

// lookAtOther is look for the algorithms that are no Counters.
func (t *ticket) lookAtOther(s *Store, now int64, a *store.Asked) {
	switch t.check.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		if a.Log = find(t, s, &t.shard.logs, now); a.Log == nil {
			a.Log = new(algorithms.Log)
		}
	case algorithms.Leaser:
		if a.Leases = find(t, s, &t.shard.leases, now); a.Leases == nil {
			a.Leases = new(algorithms.Leases)
		}
	}
}

// keep keeps what Decide has changed.
func (t *ticket) keep(s *Store, now int64, a *store.Asked) {
	if a.BanLife > 0 {
		t.shard.bans.put(t.rules, a.NextBan, now+a.BanLife)
		if a.Decision.BanBegins {
			t.shard.nameBan(t.rules, t.check, now, t.check.KeyRules.Ban.Left(a.NextBan, now))
		}
	}
	if a.Charged {
		t.charge(s, now, a)
		if t.check.LeaseID != "" {
			s.leases.Add(t.check, s.clock())
		}
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

// charge keeps the state with the charge until the decision's reset. After that the state is that of a new key.
func (t *ticket) charge(s *Store, now int64, a *store.Asked) {
	expires := now + a.Decision.ResetAfter.Microseconds()
	if t.check.Rule.Counter() != nil {
		t.shard.keep(t.id, a.Next, now, expires)
	} else {
		t.chargeOther(now, expires, a)
	}
	if t.id == t.shared {
		s.shared.Add(1)
	}
}

// chargeOther is charge for the algorithms that are no Counters.
func (t *ticket) chargeOther(now, expires int64, a *store.Asked) {
	switch algorithm := t.check.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		if t.shard.logs.get(t.id) == nil {
			a.Log = a.Log.Clone()
		}
		algorithm.Record(a.Log, a.Params, now, t.check.Cost, 0)
		t.shard.logs.put(t.id, a.Log, expires)
	case algorithms.Leaser:
		if t.shard.leases.get(t.id) == nil {
			a.Leases = a.Leases.Clone()
		}
		t.shard.lease(t.check, t.id, a.Leases, a.Params, now)
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

// adjust locks the shard, changes a charge, and keeps the state as charge does. It reports whether that changed the state
// of a Counter. A refund to a key without a state does not make one.
func (t *ticket) adjust(s *Store, to *store.Adjustment) (changed bool) {
	t.shard.mu.Lock()
	defer t.shard.mu.Unlock()
	now := s.now()
	prepared, states := to.Rule.ChargedBy(to.Override, now)
	params := prepared.Params
	if to.Override != "" {
		t.countIn(s, states)
	}
	switch a := to.Rule.Algorithm().(type) {
	case algorithms.Counter:
		was := find(t, s, &t.shard.numbers, now)
		if begun := t.shard.begun[t.id].since; to.OfBefore(begun) {
			return false
		}
		state := a.Adjust(was, params, now, to.At, to.Turn, to.Delta)
		if state == was {
			return false
		}
		_, d := a.Take(state, params, now, 0)
		t.shard.keep(t.id, state, now, now+d.ResetAfter.Microseconds())
	case algorithms.Recorder:
		log := find(t, s, &t.shard.logs, now)
		switch exists := t.shard.logs.get(t.id) != nil; {
		case log == nil && to.Delta < 0:
			return false
		case log == nil:
			log = new(algorithms.Log)
		case !exists:
			log = log.Clone()
		}
		a.Adjust(log, params, now, to.At, to.Delta)
		params[0] = algorithms.MaxEvents // as in lease
		t.shard.logs.put(t.id, log, now+a.Decide(log, params, now, 0).ResetAfter.Microseconds())
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
