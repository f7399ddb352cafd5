package simredis

import "slices"

// Table says which node of a Cluster has which slots, since some change. It is not changed.
type Table struct {
	Epoch  int64   // how many changes there were
	Ranges []Range // in the order of their slots
}

// Range is some slots that follow each other, and the address of their node.
type Range struct {
	First, Last int
	Owner       string
}

// Owner returns the address of the node that has a slot; "" if none has it.
func (t *Table) Owner(slot uint16) string {
	for _, r := range t.Ranges {
		if r.First <= int(slot) && int(slot) <= r.Last {
			return r.Owner
		}
	}
	return ""
}

// Replaced is the table when one node has taken the place of another one.
func (t *Table) Replaced(old, next string) *Table {
	n := &Table{t.Epoch + 1, slices.Clone(t.Ranges)}
	for i := range n.Ranges {
		if n.Ranges[i].Owner == old {
			n.Ranges[i].Owner = next
		}
	}
	return n
}

// Moved is the table when another node has a slot.
func (t *Table) Moved(slot uint16, to string) *Table {
	n, one := &Table{Epoch: t.Epoch + 1}, int(slot)
	for _, r := range t.Ranges {
		if r.Last < one || one < r.First {
			n.Ranges = append(n.Ranges, r)
			continue
		}
		if r.First < one {
			n.Ranges = append(n.Ranges, Range{r.First, one - 1, r.Owner})
		}
		n.Ranges = append(n.Ranges, Range{one, one, to})
		if one < r.Last {
			n.Ranges = append(n.Ranges, Range{one + 1, r.Last, r.Owner})
		}
	}
	return n
}
