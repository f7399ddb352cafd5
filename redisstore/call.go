package redisstore

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// call is one run of the script for several questions. Each key stands in it once, and
// so does a group that several ask alike: they are decided in one step, in the order in
// which they came.
type call struct {
	questions []*question
	units     []unit
	checks    int  // that the script has to decide
	mixed     bool // a check is not a Counter's alone, or a key stands in several groups
	plain     bool // how it was written: see plain.go
	careful   bool // Redis may be unable to write: see careful.go
	unable    *unwrittenError

	keys     []any             // pointers to their texts
	index    map[string]uint16 // of keys, from 1
	asked    []int             // by index: 1 + the last unit that begins with the key
	sections []int             // of a plain call: a unit of each
	places   []place
	groups   []byte
	args     []any
	mget     bool
	reads    bool // keys beside states: then what are strings is read together in any case
}

// unit is a group of checks, and who asks for it.
type unit struct {
	items   []item
	askers  []asker
	section int

	uncharged bool // Redis cannot write, and would have charged it
}

// asker is a group of a question, which begins at items[first].
type asker struct {
	*question
	first int
}

// place is where in groups a rule stands.
type place struct {
	prepared *store.Prepared
	at       uint16
}

// maxCopies is how many may share a unit: the number stands in a byte.
const maxCopies = 255

var pooledCalls = sync.Pool{New: func() any { return &call{index: make(map[string]uint16)} }}

func newCall() *call {
	c := pooledCalls.Get().(*call)
	c.asked = append(c.asked[:0], 0)
	c.mixed, c.plain, c.careful, c.unable = false, false, false, nil
	return c
}

func (c *call) free() {
	clear(c.questions)
	clear(c.keys)
	clear(c.index)
	clear(c.places)
	clear(c.args)
	for i := range c.units {
		u := &c.units[i]
		clear(u.askers)
		u.items, u.askers = nil, u.askers[:0]
	}
	c.questions, c.units, c.checks, c.keys, c.places = c.questions[:0], c.units[:0], 0, c.keys[:0], c.places[:0]
	c.args = c.args[:0]
	pooledCalls.Put(c)
}

// add takes a question into the call.
func (c *call) add(q *question) {
	c.questions = append(c.questions, q)
	first := 0
	for _, end := range q.groups {
		c.group(q.items[first:end], asker{q, first})
		first = end
	}
}

func (c *call) group(items []item, a asker) {
	k := c.key(&items[0].key)
	if n := c.asked[k]; n > 0 {
		if u := &c.units[n-1]; len(u.askers) < maxCopies && alike(u.items, items) {
			u.askers = append(u.askers, a)
			return
		}
	}
	if len(c.units) < cap(c.units) {
		c.units = c.units[:len(c.units)+1] // with the room for askers that it had
	} else {
		c.units = append(c.units, unit{})
	}
	u := &c.units[len(c.units)-1]
	u.items, u.askers, u.uncharged = items, append(u.askers, a), false
	for i := range items {
		c.mixed = c.mixed || items[i].special()
		c.key(&items[i].key)
	}
	c.asked[k] = len(c.units)
	c.checks += len(items)
	c.mixed = c.mixed || len(c.keys) < c.checks
}

// alike tells whether two groups can be decided as one.
func alike(a, b []item) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.prepared != y.prepared || x.cost != y.cost || x.key != y.key || !x.merges() || y.op != opDecide || y.sanctions != nil {
			return false
		}
	}
	return true
}

// key returns the index of a key.
func (c *call) key(name *string) uint16 {
	k, ok := c.index[*name]
	if !ok {
		c.keys = append(c.keys, name)
		c.asked = append(c.asked, 0)
		k = uint16(len(c.keys))
		c.index[*name] = k
	}
	return k
}

// arguments are those of the command.
func (c *call) arguments(command, script string) []any {
	c.groups, c.places = append(c.groups[:0], 0), c.places[:0]
	if c.plain = !c.mixed && len(c.keys) > 1; c.plain {
		c.writeSections()
	} else {
		c.writeGroups()
	}
	if c.careful {
		c.groups[0] += modeCare
	}
	c.args = append(c.args[:0], command, script, len(c.keys))
	c.args = append(c.args, c.keys...)
	c.args = append(c.args, c.groups)
	return c.args
}

func (c *call) writeGroups() {
	c.mget, c.reads = true, false
	for i := range c.units {
		u := &c.units[i]
		c.groups = append(c.groups, byte(len(u.items)), byte(len(u.askers)))
		for j := range u.items {
			c.check(&u.items[j])
		}
	}
	if c.reads || c.mget && len(c.keys) > 1 {
		c.groups[0] = modeMget
	}
}

// check writes a check, its rule where that is new, and what it has beside the state.
func (c *call) check(i *item) {
	at := c.rule(i.prepared)
	b := binary.BigEndian.AppendUint16(c.groups, at)
	b = append(b, i.sanctions.op(i.op))
	b = binary.BigEndian.AppendUint16(b, c.key(&i.key))
	b = binary.BigEndian.AppendUint64(b, uint64(i.cost))
	b = append(b, byte(len(i.hold)))
	b = append(b, i.hold...)
	if at == 0 {
		b = c.newRule(b, i.prepared)
	}
	if i.sanctions != nil {
		b = c.sanctions(b, i.sanctions)
	}
	c.groups = b
	c.mget = c.mget && counts(i.rule)
}

// rule returns where a rule stands, 0 if it does not yet.
func (c *call) rule(p *store.Prepared) uint16 {
	for _, known := range c.places {
		if known.prepared == p {
			return known.at
		}
	}
	return 0
}

// newRule writes a rule. One too far back to be found again is written each time.
func (c *call) newRule(to []byte, p *store.Prepared) []byte {
	if at := len(to) + 1; at <= math.MaxUint16 { // Lua counts from 1
		c.places = append(c.places, place{p, uint16(at)})
	}
	return append(to, p.Wire...)
}

// counts tells whether the states of a rule are strings in Redis.
func counts(r *store.Rule) bool {
	_, ok := r.Algorithm().(algorithms.Counter)
	return ok
}
