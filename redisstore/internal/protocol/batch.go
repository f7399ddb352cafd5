package protocol

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/msgpack"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Batch is one call of the script for several requests. Each key is in it once, and also a
// group that several requests ask alike: they are decided in one step, in the order in which
// they came.
type Batch struct {
	groups []group
	checks int // that the script has to decide
	mixed  bool

	countersOnly bool            // how it was written: see counters.go
	unwritten    *UnwrittenError // see careful.go

	keys     []any             // pointers to their texts
	index    map[string]uint16 // of keys, from 1
	begins   []int             // by index: 1 + the last group that begins with the key
	sections []int             // of a counter-only batch: a group of each
	rules    []ruleOffset
	copies   []byte // of a section: how many requests ask each group
	aheads   []byte // and how many units each of its checks wants ahead
	text     text
	args     []any
	mget     bool
	reads    bool // whether there are overrides or bans: then strings are always read together

	asked   []store.Asked // of the group whose reply is read, with what these point to
	given   []store.Check
	decided []algorithms.Decision
}

// group is a group of operations, and the requests that wait for it.
type group struct {
	ops     []Op
	waiters []waiter
	section int
	again   bool // a key of it is in the batch before
}

// waiter is a request that has a group, which begins at Ops[first].
type waiter struct {
	*Request
	first int
}

// ruleOffset is where in the text a rule is.
type ruleOffset struct {
	prepared *store.Prepared
	at       int
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
	clear(b.asked) // and with them what they point to of requests
	clear(b.given)
	for i := range b.groups {
		g := &b.groups[i]
		clear(g.waiters)
		g.ops, g.waiters = nil, g.waiters[:0]
	}
	b.groups, b.checks, b.keys, b.rules = b.groups[:0], 0, b.keys[:0], b.rules[:0]
	b.args, b.begins = b.args[:0], append(b.begins[:0], 0)
	b.mixed, b.countersOnly, b.unwritten = false, false, nil
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
	known := len(b.keys)
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
	g.ops, g.waiters = ops, append(g.waiters, w)
	for i := range ops {
		b.mixed = b.mixed || !ops[i].counterOnly()
		b.key(&ops[i].Key)
	}
	g.again = len(b.keys) < known+len(ops)
	b.begins[k] = len(b.groups)
	b.checks += len(ops)
	b.mixed = b.mixed || len(b.keys) < b.checks
}

// ahead returns how many units a check of the group wants charged ahead: the most that one of the requests wants. What a
// call has charged may be given back as if it had come later, so it charges nothing ahead of a key afterwards.
func (g *group) ahead(check int) (most int64) {
	if g.again {
		return 0
	}
	for _, w := range g.waiters {
		most = max(most, w.Ops[w.first+check].Ahead)
	}
	return most
}

// alike reports whether two groups can be decided as one. If some of their requests are refused, a ban counts those: of
// several checks nobody could tell which of them refused each.
func alike(a, b []Op) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Prepared != y.Prepared || x.Cost != y.Cost || x.Key != y.Key || !x.merges() || y.Kind != Decide {
			return false
		}
		if (x.KeyRules != nil || y.KeyRules != nil) && (len(a) > 1 || !x.KeyRules.equal(y.KeyRules)) {
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

// Care is the second argument of a careful call about counters.
var Care any = "c"

// modes are that of other calls: 1 to read values together, and 4 for care.
var modes = [...]any{"\x00", "\x01", 4: "\x04", "\x05"}

// What a check has beside the state, as its kind tells the script.
const (
	hasOverride = 4
	hasBan      = 8
	wantsAhead  = 16
	counts      = 32 // the rule is that of a Counter
)

// text is what the script is asked. As a pointer it costs no allocation to send, like the other
// arguments.
type text []byte

// MarshalBinary implements [encoding.BinaryMarshaler], by which go-redis reads it.
func (t *text) MarshalBinary() ([]byte, error) { return *t, nil }

// The commands that make a call.
var evalsha, eval any = "evalsha", "eval"

// Call returns the arguments of the command that makes the call by the digest of a script. They are
// valid until the next Call or CallText.
func (b *Batch) Call(s *Script) []any { return b.arguments(evalsha, &s.Digest) }

// CallText is like Call, but sends the text of the script.
func (b *Batch) CallText(s *Script) []any { return b.arguments(eval, &s.Text) }

func (b *Batch) arguments(command any, script *string) []any {
	b.text, b.rules = b.text[:0], b.rules[:0]
	b.countersOnly = !b.mixed && len(b.keys) > 0
	var mode any
	if b.countersOnly {
		mode = b.writeSections()
	} else {
		mode = b.writeGroups()
	}
	b.args = append(b.args[:0], command, script, len(b.keys))
	b.args = append(b.args, b.keys...)
	b.args = append(b.args, &b.text)
	if mode != nil {
		b.args = append(b.args, mode)
	}
	return b.args
}

// writeGroups writes a batch that is not counter-only, and returns its mode.
func (b *Batch) writeGroups() any {
	b.mget, b.reads = true, false
	for i := range b.groups {
		g := &b.groups[i]
		b.number(int64(len(g.ops)))
		b.number(int64(len(g.waiters)))
		for j := range g.ops {
			b.write(&g.ops[j], g.ahead(j))
		}
	}
	mode := 0
	if b.reads || b.mget && len(b.keys) > 1 {
		mode = 1
	}
	if b.Careful() {
		mode += 4
	}
	return modes[mode]
}

func (b *Batch) number(n int64) { b.text = msgpack.AppendInt(b.text, n) }

// write writes an operation, its rule where that is new, how much it wants ahead, and what it has beside the state.
func (b *Batch) write(o *Op, ahead int64) {
	kind := o.KeyRules.addTo(o.Kind)
	if ahead > 0 {
		kind += wantsAhead
	}
	if o.Rule.Counter() != nil {
		kind += counts
	}
	b.number(int64(kind))
	b.number(int64(b.key(&o.Key)))
	b.number(o.Cost)
	b.text = msgpack.AppendText(b.text, o.LeaseID)
	at := b.rule(o.Prepared)
	b.number(int64(at))
	if at < 0 {
		b.rules = append(b.rules, ruleOffset{o.Prepared, len(b.text)})
		b.text = append(b.text, o.Prepared.Wire...)
	}
	if ahead > 0 {
		b.number(ahead)
	}
	if o.KeyRules != nil {
		b.writeKeyRules(o.KeyRules)
	}
	b.mget = b.mget && o.Rule.Counter() != nil
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

func (b *Batch) writeKeyRules(k *KeyRules) {
	if k.Override != "" {
		b.number(int64(b.key(&k.Override)))
	}
	if k.BanState != "" {
		b.number(int64(b.key(&k.BanState)))
		for _, p := range k.Ban.Params() {
			b.number(p)
		}
	}
	b.reads = true
}

// rule returns where a rule is, -1 if it is not yet in the text.
func (b *Batch) rule(p *store.Prepared) int {
	for _, known := range b.rules {
		if known.prepared == p {
			return known.at
		}
	}
	return -1
}
