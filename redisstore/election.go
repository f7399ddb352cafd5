package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// ballot is what a node says of the slots.
type ballot struct {
	from   *lane
	ranges []redis.ClusterSlot
	err    error
}

func (l *lane) vote(ctx context.Context) ballot {
	//lint:ignore SA1019 CLUSTER SHARDS is new in Redis 7, and 6.2 must do
	ranges, err := l.client.ClusterSlots(ctx).Result()
	if err == nil && len(ranges) == 0 {
		err = errors.New("it knows of no slots")
	}
	return ballot{l, ranges, err}
}

// election decides which node has a slot: the one that most nodes name. A master that is
// cut off from the others goes on naming what it knew, for ever. So one that last said that
// it sees too few of the others has no vote. If no other node answers, such are believed
// about slots whose node does not answer either.
type election struct{ ballots []ballot }

// result returns the address of each slot's node; "" for a slot that nobody names. Of two
// nodes with as many votes, the one stays that has the slot.
func (e *election) result(now func(slot int) *lane) []string {
	voters := slices.DeleteFunc(slices.Clone(e.ballots), func(b ballot) bool { return b.from.cutOff.Load() })
	stays := func(*lane) bool { return false }
	if len(voters) == 0 {
		voters = e.ballots
		stays = func(l *lane) bool { return l != nil && !l.cutOff.Load() && !l.breaker.failing() }
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
	named := make([][]int, len(voters)) // by voter and slot
	for i, b := range voters {
		named[i] = b.nodes(number)
	}
	chosen := make([]string, slots)
	votes := make([]int, len(nodes))
	for slot := range chosen {
		present := now(slot)
		if stays(present) {
			chosen[slot] = present.address
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
			if n := node[slot]; n >= 0 && votes[n] == most && (chosen[slot] == "" || present != nil && nodes[n] == present.address) {
				chosen[slot] = nodes[n]
			}
		}
		clear(votes)
	}
	return chosen
}

// nodes are the numbers of each slot's node, as a ballot has them; -1 for none.
func (b *ballot) nodes(number func(address string) int) []int {
	all := slices.Repeat([]int{-1}, slots)
	for _, r := range b.ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slots {
			continue
		}
		node := number(beside(b.from.address, r.Nodes[0].Addr))
		for slot := r.Start; slot <= r.End; slot++ {
			all[slot] = node
		}
	}
	return all
}
