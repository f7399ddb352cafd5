package slots

import (
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxSlotKeys bounds the keys of which slots are kept.
const maxSlotKeys = 1 << 14

// Table is what this process keeps of limits of concurrency: see [lend.Slots].
type Table struct {
	mu     sync.Mutex
	keys   map[slotsOf]*slotEntry
	ofKeys map[keyOfZone][]*slotEntry
	uses   map[string]*slotUse // by the ID of the lease of the request that uses it
	owners map[string]owner    // of all slots, by name
	closed bool

	asked     map[keyOfZone]asks // those under way: from GiveWay to Answered
	returning map[keyOfZone]*returning
}

// slotsOf is for what slots are kept: requests of one cost, of one key under a limit.
type slotsOf struct {
	terms uint64
	key   string
	cost  int64
}

// keyOfZone is a key of a zone. Its slots are the same for requests of all costs, and under all limits: that of requests without a
// reserved slot too.
type keyOfZone struct{ zone, key string }

// asks are those of a key that are under way.
type asks struct {
	cost int64      // what they may take
	told lend.Slots // what the store has said is free since the first of them was sent, of a limit of so many events
	of   int64
}

type slotEntry struct {
	slotsOf
	rule  *store.Rule
	kept  lend.Slots
	lease time.Duration

	keyRules *store.KeyRules

	inUse        int
	came, looked time.Duration // the last request, and the last look at what is due
	told         algorithms.Decision
	asked        lend.Moment // when that was asked for
}

// slotUse is a slot in use.
type slotUse struct {
	*slotEntry
	slot lend.Slot
}

// owner is who has a slot: a request, or nobody.
type owner struct {
	*slotEntry
	user string
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		keys: make(map[slotsOf]*slotEntry), ofKeys: make(map[keyOfZone][]*slotEntry),
		uses: make(map[string]*slotUse), owners: make(map[string]owner), asked: make(map[keyOfZone]asks), returning: make(map[keyOfZone]*returning),
	}
}

func keyOf(c *store.Check) slotsOf { return slotsOf{c.Rule.Terms(), c.Key, c.Cost} }

func zoneKeyOf(c *store.Check) keyOfZone { return keyOfZone{c.Rule.Zone(), c.Key} }

// Get decides a check with a slot that is kept. It reports whether there is one.
func (t *Table) Get(c *store.Check, now lend.Moment) (d algorithms.Decision, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.keys[keyOf(c)]
	if e == nil {
		return d, false
	}
	e.came = now.Mono
	slot, ok := e.kept.Get(now, e.lease)
	if !ok {
		return d, false
	}
	t.use(e, slot, c.LeaseID)
	d = e.told
	d.Allowed, d.RetryAfter, d.At = true, 0, d.At+(now.Mono-e.asked.Mono).Microseconds()
	d.Remaining = min(d.Quota, (int64(e.kept.Len())+e.kept.Free())*c.Cost)
	d.NextAfter, d.ResetAfter = e.lease, e.lease
	return d, true
}

func (t *Table) use(e *slotEntry, slot lend.Slot, leaseID string) {
	e.inUse++
	t.uses[leaseID] = &slotUse{e, slot}
	t.owners[slot.Name] = owner{e, leaseID}
}

// Cancel puts a slot back that a request got, which does not pass.
func (t *Table) Cancel(leaseID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.uses[leaseID]; u != nil {
		t.end(u, leaseID)
		u.kept.Put(u.slot)
		t.owners[u.slot.Name] = owner{u.slotEntry, ""}
	}
}

// end ends the use of a slot.
func (t *Table) end(u *slotUse, leaseID string) {
	u.inUse--
	delete(t.uses, leaseID)
	delete(t.owners, u.slot.Name)
}

// Told tells what the store has decided about a check, which was sent at a time, and whether it was
// charged. If the key comes often, the slot may be kept later.
func (t *Table) Told(c *store.Check, sent lend.Moment, d *algorithms.Decision, charged, often bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.keys[keyOf(c)]
	if e == nil && often && charged && !t.closed && len(t.keys) < maxSlotKeys {
		e = t.begin(c, sent)
	}
	if e != nil {
		e.told, e.asked, e.came = *d, sent, sent.Mono
		e.keyRules = c.KeyRules
	}
	t.free(c, sent, d) // also to those of other costs
	if e != nil && charged {
		t.use(e, lend.NewSlot(c.LeaseID, sent, e.lease), c.LeaseID)
	}
}

// begin makes an entry for checks of a cost, of a key under a limit.
func (t *Table) begin(c *store.Check, now lend.Moment) *slotEntry {
	lease := time.Duration(c.Rule.At(0).Params[1]) * time.Microsecond
	e := &slotEntry{slotsOf: keyOf(c), rule: c.Rule, lease: lease, looked: now.Mono}
	t.keys[e.slotsOf] = e
	t.ofKeys[zoneKeyOf(c)] = append(t.ofKeys[zoneKeyOf(c)], e)
	under := t.asked[zoneKeyOf(c)]
	if asked, at, free, known := under.told.Heard(); known {
		e.kept.Told(asked, at, freeOf(e.rule.Limit().Events, free, under.of)/e.cost)
	}
	return e
}

// Free tells what the store said is free, with a decision that charged nothing.
func (t *Table) Free(c *store.Check, asked lend.Moment, d *algorithms.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free(c, asked, d)
}

// free is Free. The lock is held.
func (t *Table) free(c *store.Check, asked lend.Moment, d *algorithms.Decision) {
	free := d.Remaining
	if d.Override != "" {
		free = 0 // under an override none is kept: nobody says when it ends
	}
	of := zoneKeyOf(c)
	for _, e := range t.ofKeys[of] {
		e.kept.Told(asked, d.At, freeOf(e.rule.Limit().Events, free, c.Rule.Limit().Events)/e.cost)
	}
	if under, ok := t.asked[of]; ok {
		under.told.Told(asked, d.At, freeOf(under.of, free, c.Rule.Limit().Events))
		t.asked[of] = under
	}
}

// freeOf returns how many slots are free for certain under a limit, if so many are under another one. If nothing is free there,
// nobody has said how much is under a higher limit.
func freeOf(limit, free, other int64) int64 {
	if free <= 0 {
		return 0
	}
	return max(0, free+limit-other)
}

// more returns how many slots more the limit of an entry has than that of a check.
func (e *slotEntry) more(c *store.Check) int64 { return e.rule.Limit().Events - c.Rule.Limit().Events }

// GiveWay gives up what is kept of a check's key if the store could refuse the check because of that: it is kept for other
// requests, of other costs or under another limit, or its lease ends too soon, because it was not renewed. Call Returned for each.
//
// If nothing is free under a limit, nobody has said by how much all that is taken exceeds it.
//
// What the store said is free may have gone to asks of this process that are under way, so these count. This one does until
// Answered is called, unless it is a dry run, which takes nothing.
func (t *Table) GiveWay(c *store.Check, now lend.Moment) (back []store.Adjustment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := zoneKeyOf(c)
	for _, e := range t.ofKeys[of] {
		free := e.kept.Free() * e.cost
		if e.kept.Len() > 0 && (free == 0 || free-e.more(c)-t.asked[of].cost < c.Cost) {
			back = append(back, t.back(e, e.kept.All())...)
		}
	}
	if under := t.asked[of]; !c.Independent {
		if under.cost == 0 {
			under.of = c.Rule.Limit().Events
		}
		under.cost += c.Cost
		t.asked[of] = under
	}
	sortReturns(back)
	t.leave(back, now.Mono)
	return back
}

// Answered tells that the store has been asked about a check for which GiveWay was called, after Told.
func (t *Table) Answered(c *store.Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := zoneKeyOf(c)
	under := t.asked[of]
	if under.cost -= c.Cost; under.cost == 0 {
		delete(t.asked, of)
	} else {
		t.asked[of] = under
	}
}

// What happens to a slot that is given back.
type Fate uint8

const (
	Unknown Fate = iota // the table does not know it
	Kept                // it is kept for the next request
	Back                // it goes back to the store, under its own name
)

// Release ends the use of a slot.
func (t *Table) Release(leaseID string, now lend.Moment, processes int) (fate Fate, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.uses[leaseID]
	if u == nil {
		if _, known := t.owners[leaseID]; known && !t.closed { // it was given back before, and another request may have it
			return Kept, ""
		}
		return Unknown, ""
	}
	t.end(u, leaseID)
	if t.closed || !u.kept.Keep(now, u.slot, u.rule.Lend(), processes) {
		return Back, u.slot.Name
	}
	t.owners[u.slot.Name] = owner{u.slotEntry, ""}
	return Kept, ""
}

// Renewed tells that the renewal of a slot, sent at a time, was answered now.
func (t *Table) Renewed(name string, sent, now lend.Moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o, ok := t.owners[name]; {
	case !ok:
	case o.user == "":
		o.kept.Renewed(name, sent, now, o.lease)
	default:
		t.uses[o.user].slot.Renewed(sent, now, o.lease)
	}
}

// back makes adjustments that give slots back.
func (t *Table) back(e *slotEntry, slots []lend.Slot) (back []store.Adjustment) {
	for _, slot := range slots {
		delete(t.owners, slot.Name)
		back = append(back, store.Adjustment{Check: store.Check{Rule: e.rule, Key: e.key, Cost: e.cost, LeaseID: slot.Name}, Delta: -e.cost})
	}
	return back
}
