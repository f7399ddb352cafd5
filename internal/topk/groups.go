package topk

import (
	"cmp"
	"hash/maphash"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Groups counts requests by a value that they have besides their key. It is for a time in which somebody looks. It may be used
// from several goroutines at once, and its memory does not grow with the number of values.
type Groups struct {
	spans[level[group]]
	seed maphash.Seed
}

// group is a value. Longer ones than MaxKey are distinguished by their hashes.
type group struct {
	beginning string // at most MaxKey bytes
	length    int    // of the whole value
	hash      uint64 // of the whole value, if it is longer: the same in all processes
}

// NewGroups makes Groups that count in spans of this length.
func NewGroups(span time.Duration) *Groups {
	g := &Groups{seed: maphash.MakeSeed()}
	g.begin(span)
	return g
}

// Add counts a request with a value. It keeps neither the value nor the key.
func (g *Groups) Add(value, key string, refused bool) {
	of := group{beginning: value, length: len(value)}
	if len(value) > MaxKey {
		of.beginning, of.hash = value[:MaxKey], xxhash.Sum64String(value)
	}
	hash := maphash.String(g.seed, key)
	g.add(func(counts *level[group]) { counts.add(of, hash, refused, group.copy) })
}

// copy returns the group without the rest of what its text is a part of, such as the header of a request.
func (g group) copy() group {
	g.beginning = strings.Clone(g.beginning)
	return g
}

// GroupCount is a value with many requests.
type GroupCount struct {
	// Value is the first MaxKey bytes of the value, and Length the length of the whole value.
	Value  string
	Length int

	// Hash tells longer values apart, in all processes alike. It is 0 for others.
	Hash uint64

	Heavy
}

// GroupList has values.
type GroupList struct {
	Counts []GroupCount // the one with the most requests first

	// Unlisted is how many requests a value that is not in Counts may have, and UnlistedBefore how many ten minutes before.
	Unlisted, UnlistedBefore uint64
}

// Top returns the values with at least this share of all requests, from 0.002 to 1, the one with the most first. None is missing.
// It also returns how many requests there were, and since when they were counted.
func (g *Groups) Top(share float64) (top []GroupCount, total uint64, since time.Time) {
	all, total, since := g.List()
	return all.Top(share, total), total, since
}

// List returns all that is counted, how many requests there were, and since when they were counted.
func (g *Groups) List() (all GroupList, total uint64, since time.Time) {
	v := g.look()
	all.Unlisted, all.UnlistedBefore = unlisted(v.now), unlisted(v.before)
	for _, h := range sum(v.now, v.before, compareGroups) {
		all.Counts = append(all.Counts, GroupCount{Value: h.of.beginning, Length: h.of.length, Hash: h.of.hash, Heavy: h.Heavy})
	}
	return all, v.total, v.since
}

// Top returns the values with at least this share of all requests, as [Groups.Top] does.
func (all *GroupList) Top(share float64, total uint64) (top []GroupCount) {
	least := leastOf(share, total)
	for _, c := range all.Counts {
		if c.Requests.AtLeast+c.Requests.Error >= least {
			top = append(top, c)
		}
	}
	return top
}

func compareGroups(a, b group) int {
	return cmp.Or(strings.Compare(a.beginning, b.beginning), cmp.Compare(a.length, b.length), cmp.Compare(a.hash, b.hash))
}
