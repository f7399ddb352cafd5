package loans

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// Forget removes all entries of a key in a zone, with what they hold.
func (t *Table) Forget(zone, key string) {
	t.each(func(s *shard, known idEntry) {
		if known.Key == key && known.Rule.Zone() == zone {
			t.remove(s, known)
		}
	})
}

// Void gives up what is held of some keys of zones, because other rules may hold for them. It returns these.
func (t *Table) Void(now lend.Moment, which func(zone, key string) bool) (voided []*Entry) {
	t.each(func(_ *shard, known idEntry) {
		if which(known.Rule.Zone(), known.Key) {
			voided = append(voided, known.Entry)
		}
	})
	for _, e := range voided {
		e.void(now)
	}
	return voided
}

// idEntry is an entry with its id.
type idEntry struct {
	id
	*Entry
}

// each goes through all entries. The lock of the shard is held.
func (t *Table) each(do func(*shard, idEntry)) {
	if t.size.Load() == 0 {
		return
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, e := range s.entries {
			do(s, idEntry{id, e})
		}
		s.mu.Unlock()
	}
}

// remove removes an entry. The lock of the shard is held.
func (t *Table) remove(s *shard, e idEntry) {
	e.mu.Lock()
	e.Entry.gone = true
	e.mu.Unlock()
	delete(s.entries, e.id)
	t.size.Add(-1)
}

// idle reports whether the entry is no longer needed.
func (e *Entry) idle(now lend.Moment) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Gone(now)
}

// GiveBack begins the asks that give back all that is held. Of keys for which an ask is under way, it returns
// what is closed when that is over: then there may be more to give back.
func (t *Table) GiveBack(now lend.Moment) (due []Due, busy []<-chan struct{}) {
	t.each(func(_ *shard, e idEntry) {
		if a, ok := e.giveBack(now); ok {
			due = append(due, Due{e.Entry, a})
		} else if over := e.UnderWay(); over != nil {
			busy = append(busy, over)
		}
	})
	slices.SortFunc(due, func(a, b Due) int { // in the same order each time
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Rule.Zone(), b.Rule.Zone()))
	})
	return due, busy
}

// Held returns what is held, and of how many keys, by zone.
func (t *Table) Held(now lend.Moment) (held, keys map[string]int64) {
	held, keys = make(map[string]int64), make(map[string]int64)
	t.each(func(_ *shard, e idEntry) {
		if n := e.live(now); n > 0 {
			held[e.Rule.Zone()] += n
			keys[e.Rule.Zone()]++
		}
	})
	return held, keys
}
