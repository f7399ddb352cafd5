// Package topk finds the most frequent keys, in memory that does not grow with the number of keys
// and fast enough for the request path.
//
// It is the Filtered Space-Saving algorithm of N. Homem and J. P. Carvalho (Finding top-k elements in
// data streams, 2010), divided into buckets like a set-associative cache: the hash of a key selects
// its bucket. A bucket has few places, so that it is searched quickly, and a lock of its own. Keys
// without a place are counted together, in cells that their hashes select. When a cell has as much
// as the lowest count of a place, the next key of the cell replaces the key in that place, and takes
// over the count of the cell. That may belong to other keys, so it is kept as the error of the count.
// The cell of the key that had the place keeps the count of that key. So in a flood of keys that come
// once, most requests only count in a cell.
//
// The true count of a key is from AtLeast to AtLeast + Error. A key with more than 1/16 of the
// requests of its bucket is always listed. There are 32 buckets, so a key with a few thousandths
// of all requests is missed only if many keys like it share its bucket.
package topk

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	buckets = 32
	ways    = 16
	cells   = 64

	// MaxKey is how many bytes of a key are kept. Longer keys are distinguished by their hashes,
	// and listed by their beginning.
	MaxKey = 256
)

// sketch counts keys by their hashes. The zero sketch is empty and ready to use.
type sketch struct {
	buckets [buckets]atomic.Pointer[bucket]
}

// bucket has places for keys. The first n are taken.
type bucket struct {
	mu       sync.Mutex
	n        int
	requests uint64
	least    uint32 // not above the lowest count
	hashes   [ways]uint64
	without  [cells]uint32 // a key without a place has come at most as often as its cell says
	counts   [ways]uint32  // never too low
	errors   [ways]uint32  // by how much a count may be too high
	length   [ways]int
	keys     [ways][]byte // the beginnings of the keys; a new key reuses the memory of its place
	plans    [ways]string // the last plan of each key
	costs    [ways]int64  // what the last request of each key cost, of which that was noted; 0: of none
}

func cellOf(hash uint64) uint64 { return hash / buckets % cells }

// add counts a request of a key.
func (s *sketch) add(hash uint64, key, plan string) {
	at := &s.buckets[hash%buckets]
	b := at.Load()
	if b == nil {
		b = new(bucket)
		if !at.CompareAndSwap(nil, b) {
			b = at.Load()
		}
	}
	b.add(hash, key, plan)
}

func (b *bucket) add(hash uint64, key, plan string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	i := slices.Index(b.hashes[:b.n], hash)
	if i < 0 {
		if i = b.place(hash); i < 0 {
			return
		}
		b.hashes[i], b.length[i] = hash, len(key)
		b.keys[i] = append(b.keys[i][:0], key[:min(len(key), MaxKey)]...)
		b.plans[i], b.costs[i] = plan, 0
	}
	if plan != "" && b.plans[i] != plan {
		b.plans[i] = plan
	}
	b.counts[i]++
}

// place returns a place for a new key: a free one, or that of the key with the lowest count. If the
// key has come too rarely for that, place counts it in its cell, and returns -1.
func (b *bucket) place(hash uint64) (i int) {
	if b.n < ways {
		b.n++
		return b.n - 1
	}
	cell := &b.without[cellOf(hash)]
	count := *cell
	if count+1 >= b.least { // then it is time to look for the lowest count again
		for j, other := range b.counts {
			if other < b.counts[i] {
				i = j
			}
		}
		b.least = b.counts[i]
	}
	if count+1 < b.least {
		*cell++
		return -1
	}
	of := &b.without[cellOf(b.hashes[i])]
	*of = max(*of, b.counts[i])
	b.counts[i], b.errors[i] = count, count
	return i
}

// keyInfo is what a bucket has of a key.
type keyInfo struct {
	key    []byte
	length int
	plan   string
	Count
}

// all calls look for each bucket that is used.
func (s *sketch) all(look func(b *bucket)) {
	for i := range s.buckets {
		if b := s.buckets[i].Load(); b != nil {
			b.mu.Lock()
			look(b)
			b.mu.Unlock()
		}
	}
}

// at calls look for the bucket of a key, if it is used, with the place of the key, or -1.
func (s *sketch) at(hash uint64, look func(b *bucket, i int)) {
	if b := s.buckets[hash%buckets].Load(); b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		look(b, slices.Index(b.hashes[:b.n], hash))
	}
}

// each calls visit for each key. The keyInfo is only valid during the call.
func (s *sketch) each(visit func(hash uint64, t keyInfo)) {
	s.all(func(b *bucket) {
		for j := range b.n {
			visit(b.hashes[j], keyInfo{b.keys[j], b.length[j], b.plans[j], b.count(j)})
		}
	})
}

// plan returns the last plan of a key, or "" if it had none or is not counted.
func (s *sketch) plan(hash uint64) (plan string) {
	s.at(hash, func(b *bucket, i int) {
		if i >= 0 {
			plan = b.plans[i]
		}
	})
	return plan
}

// noteCost notes what the last request of a key has cost, if the key is counted.
func (s *sketch) noteCost(hash uint64, cost int64) {
	s.at(hash, func(b *bucket, i int) {
		if i >= 0 {
			b.costs[i] = cost
		}
	})
}

// cost returns what was noted last, or 0.
func (s *sketch) cost(hash uint64) (cost int64) {
	s.at(hash, func(b *bucket, i int) {
		if i >= 0 {
			cost = b.costs[i]
		}
	})
	return cost
}

// requests returns how many requests were counted.
func (s *sketch) requests() (n uint64) {
	s.all(func(b *bucket) { n += b.requests })
	return n
}

// unlisted returns how often a key without a place may have come.
func (s *sketch) unlisted() (most uint64) {
	s.all(func(b *bucket) { most = max(most, uint64(slices.Max(b.without[:]))) })
	return most
}

// count returns the count of a key.
func (s *sketch) count(hash uint64) (count Count) {
	s.at(hash, func(b *bucket, i int) {
		if count.Error = uint64(b.without[cellOf(hash)]); i >= 0 {
			count = b.count(i)
		}
	})
	return count
}

func (b *bucket) count(i int) Count {
	return Count{AtLeast: uint64(b.counts[i] - b.errors[i]), Error: uint64(b.errors[i])}
}
