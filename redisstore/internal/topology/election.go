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
	var nodes []string // by number
	number := func(address string) int {
		n := slices.Index(nodes, address)
		if n < 0 {
			n = len(nodes)
			nodes = append(nodes, address)
		}
		return n
	}
	named := make([][]int16, len(voters)) // by voter and slot
	begins := make([]bool, Slots+1)       // whether a ballot's range begins at a slot, or has ended before
	for i, b := range voters {
		named[i] = b.nodes(number, begins)
	}
	chosen := make([]string, Slots)
	votes := make([]int, len(nodes))
	var last *node.Node
	for slot := range chosen {
		present := now(slot)
		same := slot > 0 && present == last && !begins[slot]
		last = present
		switch {
		case same: // slots come in long ranges
			chosen[slot] = chosen[slot-1]
			continue
		case stays(present):
			chosen[slot] = present.Address
			continue
		}
		most := 0
		for _, node := range named {
			if n := node[slot]; n >= 0 {
				votes[n]++
				most = max(most, votes[n])
			}
		}
		for _, node := range named {
			if n := node[slot]; n >= 0 && votes[n] == most && (chosen[slot] == "" || present != nil && nodes[n] == present.Address) {
				chosen[slot] = nodes[n]
			}
		}
		clear(votes)
	}
	return chosen
}

// nodes returns the number of the node that a ballot names for each slot; -1 if it names none. It notes where ranges begin, and
// where they have ended.
func (b *ballot) nodes(number func(address string) int, begins []bool) []int16 {
	all := slices.Repeat([]int16{-1}, Slots)
	for _, r := range b.ranges {
		begins[r.first], begins[r.last+1] = true, true
		node := int16(min(number(r.address), Slots)) // no more have slots
		for slot := r.first; slot <= r.last; slot++ {
			all[slot] = node
		}
	}
	return all
}
