package redisstore

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A plain call asks what only Counters have to decide, of many keys. It is written in
// sections of equal groups, so that the script reads once what they have in common, and
// answered with the states before, from which this process works out the decisions.
// counters.lua describes the form.

// special tells whether a check is more than one of a Counter's state.
func (i *item) special() bool {
	return i.op != opDecide || i.sanctions != nil || !counts(i.rule)
}

// writeSections sorts the units by what they ask, and their keys with them.
func (c *call) writeSections() {
	c.groups[0] = modePlain
	c.sections = c.sections[:0]
	for i := range c.units {
		u := &c.units[i]
		u.section = slices.IndexFunc(c.sections, func(first int) bool { return sameSection(c.units[first].items, u.items) })
		if u.section < 0 {
			u.section = len(c.sections)
			c.sections = append(c.sections, i)
		}
	}
	if len(c.sections) > 1 {
		slices.SortStableFunc(c.units, func(a, b unit) int { return cmp.Compare(a.section, b.section) })
		c.keys = c.keys[:0]
		for i := range c.units {
			for j := range c.units[i].items {
				c.keys = append(c.keys, &c.units[i].items[j].key)
			}
		}
	}
	for first := 0; first < len(c.units); {
		end := first + 1
		for end < len(c.units) && c.units[end].section == c.units[first].section {
			end++
		}
		c.section(c.units[first:end])
		first = end
	}
}

// sameSection tells whether two groups differ in nothing but the keys.
func sameSection(a, b []item) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if x, y := &a[i], &b[i]; x.prepared != y.prepared || x.cost != y.cost {
			return false
		}
	}
	return true
}

func (c *call) section(units []unit) {
	shared := byte(0)
	if slices.ContainsFunc(units, func(u unit) bool { return len(u.askers) > 1 }) {
		shared = 1
	}
	items := units[0].items
	b := append(c.groups, byte(len(items)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(units)))
	b = append(b, shared)
	for i := range items {
		at := c.rule(items[i].prepared)
		b = binary.BigEndian.AppendUint16(b, at)
		b = binary.BigEndian.AppendUint64(b, uint64(items[i].cost))
		if at == 0 {
			b = c.newRule(b, items[i].prepared)
		}
	}
	if shared > 0 {
		for i := range units {
			b = append(b, byte(len(units[i].askers)))
		}
	}
	c.groups = b
}

// answerPlain reads the reply to a plain call.
func (c *call) answerPlain(r *reader, now int64) error {
	room, asked, admitted := int(r.uint16()), 0, 0
	for i := range c.units {
		asked += len(c.units[i].askers)
		if n := c.units[i].replay(r, now, false); !c.units[i].uncharged {
			admitted += n
		}
	}
	for !r.short && len(r.rest) > 0 {
		if !c.noteDamaged(int(r.uint16())) {
			r.short = true
		}
	}
	if !r.short && room != admitted {
		return errRoom(room, asked, admitted)
	}
	return nil
}

// noteDamaged notes that the state of a key, counted from 1, was damaged.
func (c *call) noteDamaged(key int) bool {
	for i := range c.units {
		u := &c.units[i]
		if key <= len(u.items) {
			if key > 0 {
				u.askers[0].damaged = u.items[key-1].rule
			}
			return key > 0
		}
		key -= len(u.items)
	}
	return false
}
