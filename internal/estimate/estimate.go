// Package estimate says what requests will probably cost, by what such requests have cost before. A [Table] has a
// fixed size, whatever clients send.
//
// An estimate is the mean of the costs, not their median, because only then the sum of what is booked is about the
// sum of what is charged. It forgets: after some requests, each new cost weighs a sixteenth.
package estimate

import (
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Kind is a kind of requests: those of one key, and those whose paths are alike.
type Kind struct{ key, path uint64 }

// maxSegments is how many segments of a path count.
const maxSegments = 4

// KindOf returns the kind of a request. The paths /users/17 and /USERS/18/ are alike, because case does not count, and
// each segment with a digit counts as a number.
func KindOf(key, method, path string) Kind {
	var group [128]byte
	text := append(group[:0], method...)
	for segments, i := 0, 0; i < len(path) && segments < maxSegments; {
		if path[i] == '/' {
			i++
			continue
		}
		begin, digit := len(text), false
		text = append(text, '/')
		for ; i < len(path) && path[i] != '/'; i++ {
			c := path[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			digit = digit || '0' <= c && c <= '9'
			text = append(text, c)
		}
		if digit {
			text = append(text[:begin], "/0"...)
		}
		segments++
	}
	return Kind{key: xxhash.Sum64String(key), path: xxhash.Sum64(text)}
}

// levels are the groups of a kind, the narrowest first. The last one is all requests.
func (k Kind) levels() [4]uint64 {
	const keys, paths = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f // which keep a key and a path with the same hash apart
	return [4]uint64{k.key*keys ^ k.path*paths | 1, k.path*paths | 1, k.key*keys | 1, 1}
}

const (
	sets = 2048
	ways = 2

	// memory is the number of requests after which a mean forgets.
	memory = 16
)

// mean is the mean cost of a group.
type mean struct {
	group uint64 // 0 for none
	cost  float64
	count uint32 // at most memory
}

// Table has what requests have cost. Its methods may be called from many goroutines at once.
type Table struct {
	mu    sync.Mutex
	means [sets][ways]mean
}

// Cost returns what a request of a kind will probably cost, by the narrowest group that has had requests. It reports
// whether that is known.
func (t *Table) Cost(k Kind) (cost int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, group := range k.levels() {
		if m := t.find(group); m != nil {
			return int64(math.Round(m.cost)), true
		}
	}
	return 0, false
}

// Learn notes what a request of a kind has cost.
func (t *Table) Learn(k Kind, cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, group := range k.levels() {
		if m := t.place(group); m != nil {
			m.count = min(m.count+1, memory)
			m.cost += (float64(cost) - m.cost) / float64(m.count)
		}
	}
}

// set returns the places in which a group may be.
func (t *Table) set(group uint64) *[ways]mean { return &t.means[group>>32%sets] }

// find returns the mean of a group; nil if there is none.
func (t *Table) find(group uint64) *mean {
	set := t.set(group)
	for i := range set {
		if set[i].group == group {
			return &set[i]
		}
	}
	return nil
}

// place returns the mean of a group, and makes one. A group that has had requests keeps its place against as many others,
// so that clients with many paths push out nobody soon. Then it returns nil.
func (t *Table) place(group uint64) *mean {
	if m := t.find(group); m != nil {
		return m
	}
	set := t.set(group)
	weakest := &set[0]
	for i := range set {
		if set[i].count < weakest.count {
			weakest = &set[i]
		}
	}
	if weakest.count > 1 {
		weakest.count--
		return nil
	}
	*weakest = mean{group: group}
	return weakest
}
