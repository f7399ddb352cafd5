package gate

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/heap"
)

// MaxClasses bounds the classes. Each free slot looks at all of them.
const MaxClasses = 9

// class is the keys of one priority.
type class struct {
	Class
	weight    float64
	had       float64         // ns of slots, divided by the weight
	share     float64         // ns of slots that a key has had which always had its share
	order     heap.Heap[*key] // in which keys wait
	newcomers *key            // all keys that were never served
	levels    []int           // how many keys of the class have more than so many requests that run
	latest    uint64          // key of a request, of this class or a more important one
	shared    int64           // ns, when the latest one was another one than that before
}

// reorder moves a key that has changed to its place in the order, if it waits.
func (c *class) reorder(k *key) {
	if len(k.waiting) > 0 {
		c.order.Fix(slices.Index(c.order, k))
	}
}

// slots counts the slots that the keys of the class have, of each key at most so many.
func (c *class) slots(most float64) (slots int) {
	for _, keys := range c.levels[:int(min(most, float64(len(c.levels))))] {
		slots += keys
	}
	return slots
}

// see sees a request of a class, which counts for those that are less important, too.
func (g *Gate) see(p *Place) {
	for _, c := range g.classes[p.class : g.last+1] {
		if p.id != c.latest && c.latest != 0 {
			c.shared = g.now
		}
		c.latest = p.id
	}
}

// key counts the requests of a key in a class. It lasts until they have ended, and the key no longer exceeds its share.
type key struct {
	name
	running int
	waiting []*Place // the oldest first
	had     float64  // ns of slots
	seq     uint64   // when it began to wait, to tell keys apart that have had the same
	guest   bool     // a request of it runs as one of newcomers
}

// Before implements [heap.Heap]: the fewest requests of the key run, of equal ones it has had the least, and then has waited
// longest.
func (k *key) Before(other *key) bool {
	if k.running != other.running {
		return k.running < other.running
	}
	return k.had < other.had || k.had == other.had && k.seq < other.seq
}

// name tells keys apart. One that comes in several classes has a share of each.
type name struct {
	id    uint64
	class int
}

// key returns the key of a request: that of newcomers if it was never served and has no state.
func (g *Gate) key(n name) *key {
	k, c := g.keys[n], g.classes[n.class]
	if k == nil {
		if !g.seen.has(n.id) {
			return c.newcomers
		}
		k = g.add(n)
	}
	if k.running+len(k.waiting) == 0 {
		k.had = max(k.had, c.share)
	}
	return k
}

func (g *Gate) add(n name) (k *key) {
	if last := len(g.free) - 1; last >= 0 {
		k, g.free = g.free[last], g.free[:last]
	} else {
		k = new(key)
	}
	*k = key{name: n, waiting: k.waiting[:0]}
	g.keys[n], g.all = k, append(g.all, k)
	return k
}

// forget looks at the next two keys, because others have had more since. So there are about as many keys as wait and run,
// however many come.
func (g *Gate) forget() {
	for range min(2, len(g.all)) {
		g.hand = (g.hand + 1) % len(g.all)
		k, last := g.all[g.hand], len(g.all)-1
		if k.running+len(k.waiting) == 0 && !k.guest && k.had <= g.classes[k.class].share {
			g.all[g.hand], g.all = g.all[last], g.all[:last]
			g.free = append(g.free, k)
			delete(g.keys, k.name)
		}
	}
}

// seen remembers which keys were served lately: in each of its places the last one, by a part of its hash. Its memory is
// 256 kB, however many keys there are. A key that looks like one that was served is a key of its own a little early. One
// whose place another key has taken is a newcomer again, until it is served.
type seen [1 << 17]uint16

func (s *seen) has(id uint64) bool { return s[id%uint64(len(s))] == uint16(id>>48) }
func (s *seen) add(id uint64)      { s[id%uint64(len(s))] = uint16(id >> 48) }
