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
}

// decide runs the algorithm on what is kept, and changes nothing that is kept.
func (t *ticket) decide(s *Store, now, cost int64) (d algorithms.Decision) {
	params := *t.check.Rule.Params()
	switch a := t.check.Rule.Algorithm().(type) {
	case algorithms.Counter:
		t.state, d = a.Take(find(t, s, t.shard.numbers, now).state, params, now, cost)
	case algorithms.Recorder:
		t.log = find(t, s, t.shard.logs, now).log
		if t.log == nil {
			t.log = new(algorithms.Log)
		}
		d = a.Decide(t.log, params, now, cost)
	}
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
	if t.shard.full(int(s.maxKeys.Load()), now) {
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
		a.Record(t.log, *t.check.Rule.Params(), now, t.check.Cost)
		t.shard.logs[t.id] = record{log: t.log, expires: expires}
	}
	if t.id == t.shared {
		s.shared.Add(1)
	}
}
