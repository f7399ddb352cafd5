package store

import (
	"hash/maphash"
	"iter"
	"maps"
	"sync/atomic"
)

// groupParts is into how many maps a table of groups is parted. A change copies one of them.
const groupParts = 256

// groupTable has the overrides of groups in a zone. Requests find one without a lock, because no map changes: a change puts
// another map in place of the one that it copied. The nil table is empty.
type groupTable struct {
	seed   maphash.Seed // clients choose values, so nobody may know which ones are in the same part
	parts  [groupParts]atomic.Pointer[map[Group]*Network]
	number int // of groups; it is guarded as changes are
}

func newGroupTable() *groupTable { return &groupTable{seed: maphash.MakeSeed()} }

// part returns the part of a group.
func (t *groupTable) part(group Group) *atomic.Pointer[map[Group]*Network] {
	return &t.parts[maphash.String(t.seed, group.Value)%groupParts]
}

// get returns what the table has of a group, or nil. It allocates nothing.
func (t *groupTable) get(group Group) *Network {
	if t == nil {
		return nil
	}
	if part := t.part(group).Load(); part != nil {
		return (*part)[group]
	}
	return nil
}

// all returns all groups in any order.
func (t *groupTable) all() iter.Seq[*Network] {
	return func(yield func(*Network) bool) {
		if t == nil {
			return
		}
		for i := range t.parts {
			part := t.parts[i].Load()
			if part == nil {
				continue
			}
			for _, of := range *part {
				if !yield(of) {
					return
				}
			}
		}
	}
}

// groupEdit collects changes of a table, so that each part is copied once.
type groupEdit struct {
	table  *groupTable
	copies map[*atomic.Pointer[map[Group]*Network]]map[Group]*Network
}

// edit begins changes. Requests see them after publish. Only one goroutine may do that at a time.
func (t *groupTable) edit() *groupEdit {
	return &groupEdit{t, make(map[*atomic.Pointer[map[Group]*Network]]map[Group]*Network)}
}

// set puts a network in the place of a group, or removes it with nil.
func (e *groupEdit) set(group Group, to *Network) {
	part := e.table.part(group)
	own, copied := e.copies[part]
	if !copied {
		own = make(map[Group]*Network)
		if before := part.Load(); before != nil {
			own = maps.Clone(*before)
		}
		e.copies[part] = own
	}
	e.table.number -= len(own)
	if to == nil {
		delete(own, group)
	} else {
		own[group] = to
	}
	e.table.number += len(own)
}

// publish shows the changes to requests.
func (e *groupEdit) publish() {
	for part, own := range e.copies {
		part.Store(&own)
	}
}
