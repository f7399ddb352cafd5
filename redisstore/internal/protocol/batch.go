package protocol

import (
	"encoding/binary"
	"math"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Batch is one call of the script for several requests. Each key is in it once, and so is a
// group that several requests ask alike: they are decided in one step, in the order in which
// they came.
type Batch struct {
	// Careful says that Redis may be unable to write, see careful.go.
	Careful bool

	groups []group
	checks int // that the script has to decide
	mixed  bool

	countersOnly bool // how it was written: see counters.go
	unable       *UnwrittenError

	keys     []any             // pointers to their texts
	index    map[string]uint16 // of keys, from 1
	begins   []int             // by index: 1 + the last group that begins with the key
	sections []int             // of a counter-only batch: a group of each
	rules    []ruleOffset
	text     []byte
	args     []any
	mget     bool
	reads    bool // whether there are overrides or bans: then strings are always read together
}

// group is a group of operations, and the requests that wait for it.
type group struct {
	ops     []Op
	waiters []waiter
	section int

	uncharged bool // Redis cannot write, and would have charged it
	lent      bool // parts of a key are lent, so it is not decided
}

// waiter is a request that has a group, which begins at Ops[first].
type waiter struct {
	*Request
	first int
}

// ruleOffset is where in the text a rule is.
type ruleOffset struct {
	prepared *store.Prepared
	at       uint16
}

// maxCopies is how many requests may share a group: the number is written as a byte.
const maxCopies = 255

// NewBatch returns an empty batch.
func NewBatch() *Batch {
	return &Batch{index: make(map[string]uint16), begins: []int{0}}
}

// Clear makes the batch an empty one, which keeps its room.
func (b *Batch) Clear() {
	clear(b.keys)
	clear(b.index)
	clear(b.rules)
	clear(b.args)
	for i := range b.groups {
		g := &b.groups[i]
		clear(g.waiters)
		g.ops, g.waiters = nil, g.waiters[:0]
	}
	b.groups, b.checks, b.keys, b.rules = b.groups[:0], 0, b.keys[:0], b.rules[:0]
	b.args, b.begins = b.args[:0], append(b.begins[:0], 0)
	b.mixed, b.countersOnly, b.Careful, b.unable = false, false, false, nil
}

// Checks returns how many checks the script has to decide.
func (b *Batch) Checks() int { return b.checks }

// Add takes a request into the batch.
func (b *Batch) Add(r *Request) {
	first := 0
	for _, end := range r.ends {
		b.group(r.Ops[first:end], waiter{r, first})
		first = end
	}
}

func (b *Batch) group(ops []Op, w waiter) {
	k := b.key(&ops[0].Key)
	if n := b.begins[k]; n > 0 {
		if g := &b.groups[n-1]; len(g.waiters) < maxCopies && alike(g.ops, ops) {
			g.waiters = append(g.waiters, w)
			return
		}
	}
	if len(b.groups) < cap(b.groups) {
		b.groups = b.groups[:len(b.groups)+1] // with the room for waiters that it had
	} else {
		b.groups = append(b.groups, group{})
	}
	g := &b.groups[len(b.groups)-1]
	g.ops, g.waiters, g.uncharged, g.lent = ops, append(g.waiters, w), false, false
	for i := range ops {
		b.mixed = b.mixed || !ops[i].counterOnly()
		b.key(&ops[i].Key)
	}
	b.begins[k] = len(b.groups)
	b.checks += len(ops)
	b.mixed = b.mixed || len(b.keys) < b.checks
}

// alike reports whether two groups can be decided as one.
func alike(a, b []Op) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Prepared != y.Prepared || x.Cost != y.Cost || x.Key != y.Key || !x.merges() || y.Kind != Decide || y.KeyRules != nil {
			return false
		}
	}
	return true
}

// key returns the index of a key.
func (b *Batch) key(name *string) uint16 {
	k, ok := b.index[*name]
	if !ok {
		b.keys = append(b.keys, name)
		b.begins = append(b.begins, 0)
		k = uint16(len(b.keys))
		b.index[*name] = k
	}
	return k
}

// What the first byte of a call says: values are read together, the batch is counter-only, or that
// and of one check for one request. Care is added to the others.
const (
	modeMget     = 1
	modeCounters = 2
	modeLone     = 3
	modeCare     = 4
)

// What a check has beside the state, as its kind tells the script.
const (
	hasOverride = 4
	hasBan      = 8
)

// Arguments returns the arguments of the command that makes the call: evalsha with the digest of
// the script, or eval with its text. They are valid until the next call of Arguments.
func (b *Batch) Arguments(command, script string) []any {
	b.text, b.rules = append(b.text[:0], 0), b.rules[:0]
	b.countersOnly = !b.mixed && len(b.keys) > 0
	switch {
	case !b.countersOnly:
		b.writeGroups()
	case b.lone():
		b.writeLone()
	default:
		b.writeSections()
	}
	if b.Careful {
		b.text[0] += modeCare
	}
	b.args = append(b.args[:0], command, script, len(b.keys))
	b.args = append(b.args, b.keys...)
	b.args = append(b.args, b.text)
	return b.args
}

func (b *Batch) writeGroups() {
	b.mget, b.reads = true, false
	for i := range b.groups {
		g := &b.groups[i]
		b.text = append(b.text, byte(len(g.ops)), byte(len(g.waiters)))
		for j := range g.ops {
			b.write(&g.ops[j])
		}
	}
	if b.reads || b.mget && len(b.keys) > 1 {
		b.text[0] = modeMget
	}
}

// write writes an operation, its rule where that is new, and what it has beside the state.
func (b *Batch) write(o *Op) {
	at := b.rule(o.Prepared)
	to := binary.BigEndian.AppendUint16(b.text, at)
	to = append(to, o.KeyRules.addTo(o.Kind))
	to = binary.BigEndian.AppendUint16(to, b.key(&o.Key))
	to = binary.BigEndian.AppendUint64(to, uint64(o.Cost))
	to = append(to, byte(len(o.Hold)))
	to = append(to, o.Hold...)
	if at == 0 {
		to = b.newRule(to, o.Prepared)
	}
	if o.KeyRules != nil {
		to = b.writeKeyRules(to, o.KeyRules)
	}
	b.text = to
	b.mget = b.mget && isCounter(o.Rule.Algorithm())
}

// addTo is a kind together with what the check has beside the state.
func (k *KeyRules) addTo(kind Kind) byte {
	if k == nil {
		return byte(kind)
	}
	if k.Override != "" {
		kind += hasOverride
	}
	if k.BanState != "" {
		kind += hasBan
	}
	return byte(kind)
}

func (b *Batch) writeKeyRules(to []byte, k *KeyRules) []byte {
	if k.Override != "" {
		to = binary.BigEndian.AppendUint16(to, b.key(&k.Override))
	}
	if k.BanState != "" {
		to = binary.BigEndian.AppendUint16(to, b.key(&k.BanState))
		for _, p := range k.Ban.Params() {
			to = binary.BigEndian.AppendUint64(to, uint64(p))
		}
	}
	b.reads = true
	return to
}

// rule returns where a rule is, 0 if it is not yet in the text.
func (b *Batch) rule(p *store.Prepared) uint16 {
	for _, known := range b.rules {
		if known.prepared == p {
			return known.at
		}
	}
	return 0
}

// newRule writes a rule. One too far back to be found again is written each time.
func (b *Batch) newRule(to []byte, p *store.Prepared) []byte {
	if at := len(to) + 1; at <= math.MaxUint16 { // Lua counts from 1
		b.rules = append(b.rules, ruleOffset{p, uint16(at)})
	}
	return append(to, p.Wire...)
}

// isCounter reports whether the states of an algorithm are strings in Redis.
func isCounter(a algorithms.Algorithm) bool {
	_, ok := a.(algorithms.Counter)
	return ok
}
