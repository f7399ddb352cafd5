package topology

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// ballot is what a node says about the slots.
type ballot struct {
	from   *node.Node
	ranges []slotRange
}

// election decides which node has a slot: the one that most nodes name. A master that is cut off
// from the others names what it knew before, forever. So a node that last said that it sees too
// few of the others has no vote. If no other node answers, the votes of such nodes count for slots
// whose own node does not answer either.
type election struct{ ballots []ballot }

// result returns the address of each slot's node; "" for a slot that no ballot names. If two
// nodes have as many votes, the slot stays where it is.
func (e *election) result(now func(slot int) *node.Node) []string {
	voters := slices.DeleteFunc(slices.Clone(e.ballots), func(b ballot) bool { return b.from.CutOff() })
	stays := func(*node.Node) bool { return false }
	if len(voters) == 0 {
		voters = e.ballots
		stays = func(n *node.Node) bool { return n != nil && !n.CutOff() && !n.Failing() }
	}
	named := make([][]*slotRange, len(voters)) // by voter and slot
	for i := range voters {
		named[i] = voters[i].bySlot()
	}
	chosen := make([]string, Slots)
	var last *node.Node
	for slot := range chosen {
		present := now(slot)
		same := slot > 0 && present == last && !slices.ContainsFunc(named, func(of []*slotRange) bool { return of[slot] != of[slot-1] })
		last = present
		switch {
		case same: // slots come in long ranges
			chosen[slot] = chosen[slot-1]
		case stays(present):
			chosen[slot] = present.Address
		default:
			chosen[slot] = mostNamed(named, slot, present)
		}
	}
	return chosen
}

// mostNamed returns the address that most voters name for a slot.
func mostNamed(named [][]*slotRange, slot int, present *node.Node) (best string) {
	votes, most := make(map[string]int), 0
	for _, of := range named {
		if r := of[slot]; r != nil {
			votes[r.address]++
			most = max(most, votes[r.address])
		}
	}
	for address, n := range votes {
		if n == most && (best == "" || address < best) {
			best = address
		}
	}
	if present != nil && most > 0 && votes[present.Address] == most {
		return present.Address
	}
	return best
}

// bySlot returns the range that a ballot has for each slot, or nil.
func (b *ballot) bySlot() []*slotRange {
	all := make([]*slotRange, Slots)
	for i := range b.ranges {
		r := &b.ranges[i]
		for slot := r.first; slot <= r.last; slot++ {
			all[slot] = r
		}
	}
	return all
}
