package protocol

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A counter-only batch asks what only Counters have to decide, of one key or many. It is written in
// sections of equal groups, so that the script reads once what they have in common, and
// answered with the states before, from which this process works out the decisions.
// counters.lua describes the form.

// counterOnly reports whether an operation is the decision on a Counter's state and no more.
func (o *Op) counterOnly() bool {
	return o.Kind == Decide && o.KeyRules == nil && isCounter(o.Rule.Algorithm())
}

// lone reports whether a counter-only batch has one check for one request.
func (b *Batch) lone() bool { return b.checks == 1 && len(b.groups[0].waiters) == 1 && !b.Careful }

// writeLone writes the one check.
func (b *Batch) writeLone() {
	o := &b.groups[0].ops[0]
	b.text[0] = modeLone
	b.text = binary.BigEndian.AppendUint64(b.text, uint64(o.Cost))
	b.text = append(b.text, o.Prepared.Wire...)
}

// writeSections sorts the groups by what they ask, and their keys with them.
func (b *Batch) writeSections() {
	b.text[0] = modeCounters
	b.sections = b.sections[:0]
	for i := range b.groups {
		g := &b.groups[i]
		g.section = slices.IndexFunc(b.sections, func(first int) bool { return sameSection(b.groups[first].ops, g.ops) })
		if g.section < 0 {
			g.section = len(b.sections)
			b.sections = append(b.sections, i)
		}
	}
	if len(b.sections) > 1 {
		slices.SortStableFunc(b.groups, func(x, y group) int { return cmp.Compare(x.section, y.section) })
		b.keys = b.keys[:0]
		for i := range b.groups {
			for j := range b.groups[i].ops {
				b.keys = append(b.keys, &b.groups[i].ops[j].Key)
			}
		}
	}
	for first := 0; first < len(b.groups); {
		end := first + 1
		for end < len(b.groups) && b.groups[end].section == b.groups[first].section {
			end++
		}
		b.section(b.groups[first:end])
		first = end
	}
}

// sameSection reports whether two groups differ in nothing but the keys.
func sameSection(a, b []Op) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if x, y := &a[i], &b[i]; x.Prepared != y.Prepared || x.Cost != y.Cost {
			return false
		}
	}
	return true
}

func (b *Batch) section(groups []group) {
	shared := byte(0)
	if slices.ContainsFunc(groups, func(g group) bool { return len(g.waiters) > 1 }) {
		shared = 1
	}
	ops := groups[0].ops
	to := append(b.text, byte(len(ops)))
	to = binary.BigEndian.AppendUint16(to, uint16(len(groups)))
	to = append(to, shared)
	for i := range ops {
		to = binary.BigEndian.AppendUint64(to, uint64(ops[i].Cost))
		to = append(to, ops[i].Prepared.Wire...)
	}
	if shared > 0 {
		for i := range groups {
			to = append(to, byte(len(groups[i].waiters)))
		}
	}
	b.text = to
}

// stateSize is how many bytes of the state of a Counter are in a reply.
const stateSize = 28

// readCounters reads the reply to a counter-only batch.
func (b *Batch) readCounters(r *reader, now int64) error {
	room, asked, admitted := int(r.uint16()), 0, 0
	marks := *r // behind the states
	marks.text(stateSize * len(b.keys))
	for !marks.short && len(marks.rest) > 0 {
		if n := int(marks.uint16()); !b.mark(n&^markLent, n&markLent != 0) {
			marks.short = true
		}
	}
	for i := range b.groups {
		asked += len(b.groups[i].waiters)
		if n := b.groups[i].replay(r, now, false); !b.groups[i].uncharged {
			admitted += n
		}
	}
	r.rest, r.short = marks.rest, marks.short
	if !r.short && room != admitted {
		return errRoom(room, asked, admitted)
	}
	return nil
}

// markLent is added to the number of a key of which parts are lent.
const markLent = 1 << 15

// mark notes that the state of a key, counted from 1, was damaged, or that parts of the key are lent.
// It reports whether there is such a key.
func (b *Batch) mark(key int, lent bool) bool {
	for i := range b.groups {
		g := &b.groups[i]
		if key <= len(g.ops) {
			if key > 0 && lent {
				g.lent = true
			} else if key > 0 {
				g.waiters[0].Damaged = g.ops[key-1].Rule
			}
			return key > 0
		}
		key -= len(g.ops)
	}
	return false
}
