package loans

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	shards = 64

	// maxPerShard bounds the entries of a shard. Further keys are asked for as if they were rare.
	maxPerShard = 256

	// lastRoom is how many of these are for keys that come much more often than others.
	lastRoom = maxPerShard / 8

	// slots is how many keys of a shard are counted at a time. A key may have one of some slots in a row.
	slots, ways = 128, 4

	// often is how many requests of a key make an entry: in the longest time between two asks. A key that
	// has an entry costs each other process an expensive call too, so chance must not make one: with
	// fewer, some of many keys that come equally rarely begin, and the others follow.
	often = 8

	// oftenAlone is the same for the only process: there are no others whose calls would be more expensive then.
	oftenAlone = 5
)

// Table has the entries of the keys that come often. Of other keys it keeps nothing, but for a count
// in one of some slots.
type Table struct {
	Used chan struct{} // closed when there is a first entry

	use    sync.Once
	epoch  time.Time
	seed   maphash.Seed
	first  uint64 // borrowers are numbered from here
	made   atomic.Uint64
	size   atomic.Int64
	period atomic.Int64 // the shortest of all entries, in nanoseconds
	alone  atomic.Bool  // no other process uses the store
	shards [shards]shard
	schedule
}

type shard struct {
	mu      sync.Mutex
	entries map[id]*Entry
	slots   []slot // nil if nothing was counted yet
}

// id is a key under a limit, by hashes.
type id struct{ terms, key uint64 }

// slot counts the requests of one key since a time. It is small, so that a row of slots is in one
// cache line: most of what it costs to count is to wait for that.
type slot struct {
	key         uint32 // a part of the hash: to mistake one key for another does no harm
	since, last uint32 // in milliseconds
	n           uint16
	lent        bool // other processes may hold parts of it
}

// age returns how long the slot has counted.
func (c *slot) age(now time.Duration) time.Duration { return since(now, c.since) }

// since returns how long ago something was, which is less than 49 days.
func since(now time.Duration, then uint32) time.Duration {
	return time.Duration(millis(now)-then) * time.Millisecond
}

func millis(d time.Duration) uint32 { return uint32(d / time.Millisecond) }

// New returns an empty table.
func New() *Table {
	t := &Table{Used: make(chan struct{}), epoch: time.Now(), seed: maphash.MakeSeed()}
	var b [8]byte
	_, _ = rand.Read(b[:])
	t.first = binary.BigEndian.Uint64(b[:])
	for i := range t.shards {
		t.shards[i].entries = make(map[id]*Entry)
	}
	return t
}

// CountProcesses tells how many processes use the store, as far as is known. Until then there may be
// others.
func (t *Table) CountProcesses(n int64) { t.alone.Store(n == 1) }

// often returns how many requests of a key make an entry in a shard. The less room there is, the more it takes:
// so many keys that come just often enough leave room for those that come much more often.
func (t *Table) often(s *shard) uint16 {
	n := uint16(often)
	if t.alone.Load() {
		n = oftenAlone
	}
	switch room := maxPerShard - len(s.entries); {
	case room <= lastRoom:
		return 16 * n
	case room <= 2*lastRoom:
		return 4 * n
	}
	return n
}

// Now returns the time on both clocks.
func (t *Table) Now() lend.Moment {
	now := time.Now()
	return lend.Moment{Mono: now.Sub(t.epoch), Wall: time.Duration(now.UnixNano())}
}

// Size returns how many entries there are.
func (t *Table) Size() int { return int(t.size.Load()) }

// Period returns the shortest period of an entry so far, or 0 if there was none.
func (t *Table) Period() time.Duration { return time.Duration(t.period.Load()) }

// entry returns the entry of a key, or nil. The lock of the shard is held.
func (s *shard) entry(id id, key string) *Entry {
	if e := s.entries[id]; e != nil && e.Key == key {
		return e
	}
	return nil
}

func (t *Table) place(rule *store.Rule, key string) (*shard, id) {
	i := id{rule.Terms(), maphash.String(t.seed, key)}
	return &t.shards[i.key%shards], i
}

// Find counts a request of a key, and returns its entry; nil if the key does not come often enough to
// borrow. Then it reports whether parts of the key are known to be lent to other processes.
func (t *Table) Find(rule *store.Rule, key string, cost int64, now lend.Moment) (e *Entry, lent bool) {
	s, id := t.place(rule, key)
	s.mu.Lock()
	if e = s.entry(id, key); e == nil {
		c := s.slot(id, now.Mono)
		if c.count(now.Mono, rule.LongestLend()) >= t.often(s) {
			if e = t.make(s, id, rule, key, now); e != nil {
				before := int64(c.n - 1)
				e.b.Came(now.Mono-c.age(now.Mono), before, before*cost)
			}
		}
		lent = c.lent
	}
	s.mu.Unlock()
	if e == nil || e.want(now, cost) {
		return e, lent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.slot(id, now.Mono).lent
}

// FindLent returns the entry of a key of which others have been lent parts, as the store has just said. Such
// a key is asked for by an expensive call anyway, so it does not have to come often. It returns nil if the key was borrowed
// before, and that was not worth it, or if there is little room left.
func (t *Table) FindLent(rule *store.Rule, key string, cost int64, now lend.Moment) *Entry {
	t.Lent(rule, key, true, now)
	e := t.Known(rule, key)
	switch {
	case e == nil:
		return t.makeBeside(lastRoom, rule, key, cost, now)
	case e.borrows(now):
		return e
	}
	return nil
}

// Make returns the entry of a key, however often it comes; nil if there is no room.
func (t *Table) Make(rule *store.Rule, key string, cost int64, now lend.Moment) *Entry {
	return t.makeBeside(0, rule, key, cost, now)
}

// makeBeside is like Make, but leaves room for some more entries.
func (t *Table) makeBeside(room int, rule *store.Rule, key string, cost int64, now lend.Moment) *Entry {
	s, id := t.place(rule, key)
	s.mu.Lock()
	e := s.entry(id, key)
	if e == nil && len(s.entries)+room < maxPerShard {
		e = t.make(s, id, rule, key, now)
	}
	s.mu.Unlock()
	if e != nil {
		e.want(now, cost)
	}
	return e
}

// make makes an entry, if there is room. The lock of the shard is held.
func (t *Table) make(s *shard, id id, rule *store.Rule, key string, now lend.Moment) *Entry {
	if len(s.entries) >= maxPerShard || s.entries[id] != nil { // of a key with the same hash
		return nil
	}
	e := &Entry{Rule: rule, Key: key, schedule: &t.schedule, b: lend.NewBorrower(t.first+t.made.Add(1), rule.Lend(), rule.LongestLend())}
	s.entries[id] = e
	t.size.Add(1)
	if known, period := t.period.Load(), int64(rule.Lend()); known == 0 || period < known {
		t.period.Store(period)
	}
	t.use.Do(func() { close(t.Used) })
	t.schedule.plan(e, now.Mono+rule.LongestLend())
	return e
}

// Lent notes whether parts of a key without an entry are lent to other processes.
func (t *Table) Lent(rule *store.Rule, key string, lent bool, now lend.Moment) {
	s, id := t.place(rule, key)
	s.mu.Lock()
	s.slot(id, now.Mono).lent = lent
	s.mu.Unlock()
}

// slot returns the slot of a key. If it has none, it gets that of the key that came least often. The lock
// of the shard is held.
func (s *shard) slot(id id, now time.Duration) *slot {
	if s.slots == nil {
		s.slots = make([]slot, slots)
	}
	hash := id.key ^ id.terms
	key, first := uint32(hash>>32), hash/shards%(slots/ways)*ways
	row := s.slots[first : first+ways]
	rarest, at := &row[0], millis(now)
	for i := range row {
		switch c := &row[i]; {
		case c.key == key:
			c.last = at
			return c
		case c.n < rarest.n || c.n == rarest.n && c.last < rarest.last:
			rarest = c
		}
	}
	for i := range row {
		if c := &row[i]; c != rarest && c.n > 1 && since(now, c.last) > time.Second { // it makes room some time
			c.n--
		}
	}
	*rarest = slot{key: key, since: at, last: at}
	return rarest
}

// count counts a request, and returns how many have come in a while.
func (c *slot) count(now, while time.Duration) uint16 {
	if c.age(now) > while || c.n == math.MaxUint16 {
		c.since, c.n = millis(now), 0
	}
	c.n++
	return c.n
}

// Known returns the entry of a key, or nil.
func (t *Table) Known(rule *store.Rule, key string) *Entry {
	if t.size.Load() == 0 {
		return nil
	}
	s, id := t.place(rule, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry(id, key)
}
