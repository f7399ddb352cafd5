package slots

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Due returns the slots to give back, of which Returned is to be told, and peeks at the keys of which it must be known what is free.
func (t *Table) Due(now lend.Moment, processes int) (back []store.Adjustment, peeks []store.Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.keys {
		period := e.rule.Lend()
		if now.Mono-e.looked < period {
			continue
		}
		e.looked = now.Mono
		back = append(back, t.back(e, e.kept.Surplus(now, processes))...)
		if e.kept.Due(now, period) || e.inUse > 0 && now.Mono-e.came < 2*period {
			peeks = append(peeks, store.Check{Rule: e.rule, Key: e.key, Cost: e.cost, Peek: true, KeyRules: e.keyRules})
		}
		if e.inUse == 0 && e.kept.Len() == 0 && now.Mono-e.came >= 2*period {
			t.forget(e)
		}
	}
	sortReturns(back)
	slices.SortFunc(peeks, func(a, b store.Check) int { return byKey(&a, &b) })
	t.leave(back, now.Mono)
	return back, peeks
}

// forget forgets an entry.
func (t *Table) forget(e *slotEntry) {
	delete(t.keys, e.slotsOf)
	of := keyOfZone{e.rule.Zone(), e.key}
	if t.ofKeys[of] = slices.DeleteFunc(t.ofKeys[of], func(o *slotEntry) bool { return o == e }); len(t.ofKeys[of]) == 0 {
		delete(t.ofKeys, of)
	}
}

// Void gives up the slots of some keys of zones, because other rules may hold for them, or the store has forgotten them. Call Returned for each.
func (t *Table) Void(now lend.Moment, which func(zone, key string) bool) (back []store.Adjustment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.keys {
		if which(e.rule.Zone(), e.key) {
			back = append(back, t.back(e, e.kept.Void(now))...)
		}
	}
	sortReturns(back)
	t.leave(back, now.Mono)
	return back
}

// Any reports whether slots of any key may be kept.
func (t *Table) Any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys) > 0
}

// Close gives up all slots. From now on none is kept.
func (t *Table) Close() (back []store.Adjustment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, e := range t.keys {
		back = append(back, t.back(e, e.kept.All())...)
	}
	sortReturns(back)
	return back
}

// byKey orders checks in the same way each time, whatever the order of a map was.
func byKey(a, b *store.Check) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Rule.Zone(), b.Rule.Zone()), cmp.Compare(a.Cost, b.Cost))
}

func sortReturns(back []store.Adjustment) {
	slices.SortFunc(back, func(a, b store.Adjustment) int {
		return cmp.Or(byKey(&a.Check, &b.Check), cmp.Compare(a.LeaseID, b.LeaseID))
	})
}

// Kept returns how many slots are kept, and of how many keys, by zone.
func (t *Table) Kept() (kept, keys map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, keys = make(map[string]int64), make(map[string]int64)
	for _, e := range t.keys {
		if n := e.kept.Len(); n > 0 {
			kept[e.rule.Zone()] += int64(n)
			keys[e.rule.Zone()]++
		}
	}
	return kept, keys
}

// Keeps reports whether a slot is kept for such a check.
func (t *Table) Keeps(c *store.Check) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.keys[keyOf(c)]
	return e != nil && e.kept.Len() > 0
}

// KeptOf returns how many slots of a key are kept.
func (t *Table) KeptOf(rule *store.Rule, key string) (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.ofKeys[keyOfZone{rule.Zone(), key}] {
		n += int64(e.kept.Len()) * e.cost
	}
	return n
}
