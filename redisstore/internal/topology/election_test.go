package topology

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// TestElection: whatever ranges ballots name, each slot goes to the node that most of them name for it, and stays where it is if
// that is one of them.
func TestElection(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var nodes []*node.Node
	for i := range 4 {
		nodes = append(nodes, &node.Node{Address: "127.0.0.1:" + strconv.Itoa(i+1)})
	}
	for range 30 {
		edges := []int{0, 1, 100, 101, 5000, Slots - 1, random.IntN(Slots)}
		var e election
		for range 1 + random.IntN(4) {
			b := ballot{from: nodes[0]}
			for range random.IntN(5) {
				one, other := edges[random.IntN(len(edges))], edges[random.IntN(len(edges))]
				b.ranges = append(b.ranges, slotRange{first: min(one, other), last: max(one, other), address: nodes[random.IntN(len(nodes))].Address})
			}
			e.ballots = append(e.ballots, b)
		}
		present := make([]*node.Node, Slots)
		for slot := range present {
			if slot > 0 && random.IntN(1000) > 0 {
				present[slot] = present[slot-1]
			} else if n := random.IntN(len(nodes) + 1); n < len(nodes) {
				present[slot] = nodes[n]
			}
		}
		for slot, got := range e.result(func(slot int) *node.Node { return present[slot] }) {
			if !theMost(&e, slot, present[slot])[got] {
				t.Fatalf("slot %d goes to %q, of %v", slot, got, theMost(&e, slot, present[slot]))
			}
		}
	}
}

// theMost returns which nodes a slot may go to.
func theMost(e *election, slot int, present *node.Node) map[string]bool {
	votes, most := make(map[string]int), 0
	for _, b := range e.ballots {
		named := ""
		for _, r := range b.ranges {
			if slot >= r.first && slot <= r.last {
				named = r.address
			}
		}
		if named != "" {
			votes[named]++
			most = max(most, votes[named])
		}
	}
	if len(votes) == 0 {
		return map[string]bool{"": true}
	}
	if present != nil && votes[present.Address] == most {
		return map[string]bool{present.Address: true}
	}
	all := make(map[string]bool)
	for address, n := range votes {
		all[address] = n == most
	}
	return all
}
