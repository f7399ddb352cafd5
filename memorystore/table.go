package memorystore

import "math/bits"

// stateID identifies the state of a key: a hash of zone, family and key, see [Store.place]. The first
// number is never 0.
type stateID [2]uint64

// table keeps values by their IDs, until they expire. It is a hash table with open addressing: a
// value is in its slot, near the place that its ID selects, so it is usually found in one or two
// cache lines. The zero table is empty and ready to use.
type table[V any] struct {
	slots []slot[V]
	n     int // how many are taken
}

// slot is free if its ID is zero.
type slot[V any] struct {
	id      stateID
	expires int64
	value   V
}

const (
	// leastSlots is the size of the smallest table that is not empty.
	leastSlots = 8

	// A table grows by half when two thirds of its slots are taken. So a value is found after two
	// slots on average, and the absence of one after five.
	taken, ofSlots = 2, 3
)

// get returns the slot of an ID, or nil if there is none. It is valid until the table changes.
func (t *table[V]) get(id stateID) *slot[V] {
	if t.n == 0 {
		return nil
	}
	if s := &t.slots[t.search(id)]; s.id == id {
		return s
	}
	return nil
}

// value returns the value of an ID, and the zero value if there is none.
func (t *table[V]) value(id stateID) (v V) {
	if s := t.get(id); s != nil {
		v = s.value
	}
	return v
}

// put keeps a value under an ID, in place of the one that is there.
func (t *table[V]) put(id stateID, value V, expires int64) {
	if (t.n+1)*ofSlots > len(t.slots)*taken {
		if s := t.get(id); s != nil {
			s.value, s.expires = value, expires
			return
		}
		t.resize(max(leastSlots, len(t.slots)+len(t.slots)/2))
	}
	s := &t.slots[t.search(id)]
	if s.id != id {
		s.id = id
		t.n++
	}
	s.value, s.expires = value, expires
}

// delete removes an ID, if it is there.
func (t *table[V]) delete(id stateID) {
	if t.n > 0 {
		if i := t.search(id); t.slots[i].id == id {
			t.free(i)
		}
	}
}

// drop removes what has expired, and frees memory if little is left.
func (t *table[V]) drop(now int64) {
	for i := range t.slots {
		for t.slots[i].id[0] != 0 && t.slots[i].expires <= now {
			t.free(i)
		}
	}
	if n := max(leastSlots, 2*t.n); n < len(t.slots)/4 {
		t.resize(n)
	}
}

// search returns the index of the slot of an ID or, if it is not in the table, of the free slot for
// it. There is always a free slot.
func (t *table[V]) search(id stateID) int {
	i := t.home(id)
	for t.slots[i].id != id && t.slots[i].id[0] != 0 {
		i = t.next(i)
	}
	return i
}

// home returns the slot where the search for an ID begins.
func (t *table[V]) home(id stateID) int {
	high, _ := bits.Mul64(id[0], uint64(len(t.slots)))
	return int(high)
}

// next returns the index after i. The first slot comes after the last one.
func (t *table[V]) next(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// free empties a slot, and moves those behind it that would not be found any more.
func (t *table[V]) free(hole int) {
	size := len(t.slots)
	for i := t.next(hole); t.slots[i].id[0] != 0; i = t.next(i) {
		// How far the slot is from where the search for it begins, and from the hole.
		fromHome, fromHole := i-t.home(t.slots[i].id), i-hole
		if fromHome < 0 {
			fromHome += size
		}
		if fromHole < 0 {
			fromHole += size
		}
		if fromHome >= fromHole {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot[V]{}
	t.n--
}

// resize moves everything into new slots.
func (t *table[V]) resize(size int) {
	old := t.slots
	t.slots = make([]slot[V], size)
	for i := range old {
		if old[i].id[0] != 0 {
			t.slots[t.search(old[i].id)] = old[i]
		}
	}
}
