package protocol

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/msgpack"
)

// A counter-only batch asks what only Counters have to decide, of one key or many. It is written in
// sections of equal groups, so that the script reads once what they have in common, and
// answered with the states before, from which this process works out the decisions.
// counters.lua describes the form.

// counterOnly reports whether an operation is the decision on a Counter's state and no more.
func (o *Op) counterOnly() bool {
	return o.Kind == Decide && o.KeyRules == nil && o.Rule.Counter() != nil
}

// writeCheck writes a check of a counter-only batch.
func (b *Batch) writeCheck(o *Op) {
	b.text = append(b.text, o.Prepared.Wire...)
	b.number(o.Cost)
}

// writeSections sorts the groups by what they ask, and their keys with them, and returns the mode. If all keys are asked
// the same check, each by one request, the text is no more than that.
func (b *Batch) writeSections() (mode any) {
	b.sections = b.sections[:0]
	shared := false // by several requests, or with units that are wanted ahead
	for i := range b.groups {
		g := &b.groups[i]
		shared = shared || len(g.waiters) > 1 || slices.ContainsFunc(g.ops, func(o Op) bool { return o.Ahead > 0 })
		g.section = slices.IndexFunc(b.sections, func(first int) bool { return sameSection(b.groups[first].ops, g.ops) })
		if g.section < 0 {
			g.section = len(b.sections)
			b.sections = append(b.sections, i)
		}
	}
	if b.Careful() {
		mode = Care
	}
	if len(b.sections) == 1 && len(b.groups) == b.checks && !shared {
		b.writeCheck(&b.groups[0].ops[0])
		return mode
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
	return mode
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

// wanted returns how many units each check of the groups of a section wants ahead, or nothing if none does.
func (b *Batch) wanted(groups []group) []byte {
	b.aheads = b.aheads[:0]
	any := int64(0)
	for i := range groups {
		for j := range groups[i].ops {
			n := groups[i].ahead(j)
			any |= n
			b.aheads = binary.BigEndian.AppendUint16(b.aheads, uint16(n))
		}
	}
	if any == 0 {
		return nil
	}
	return b.aheads
}

func (b *Batch) section(groups []group) {
	b.copies = b.copies[:0]
	if slices.ContainsFunc(groups, func(g group) bool { return len(g.waiters) > 1 }) {
		for i := range groups {
			b.copies = append(b.copies, byte(len(groups[i].waiters)))
		}
	}
	ops := groups[0].ops
	b.writeCheck(&ops[0])
	b.number(int64(len(ops)))
	b.number(int64(len(groups)))
	b.text = msgpack.AppendText(b.text, b.copies)
	b.text = msgpack.AppendText(b.text, b.wanted(groups))
	for i := 1; i < len(ops); i++ {
		b.writeCheck(&ops[i])
	}
}
