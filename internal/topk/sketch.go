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
// The count of a key without that error is certain: the key has come at least so often. A key with more than 1/16 of the
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
)

// sketch counts keys by their hashes, and knows something of each key with a place. The zero sketch is empty and ready to use.
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
	of       [ways]keyInfo // a new key gets that of the key which had its place before
}

func cellOf(hash uint64) uint64 { return hash / buckets % cells }

// add counts a request of a key. It returns what is known of the key, or nil if the key has no place, and whether the place is
// new. The bucket is locked: the caller must unlock it.
func (s *sketch) add(hash uint64) (b *bucket, of *keyInfo, isNew bool) {
	at := &s.buckets[hash%buckets]
	if b = at.Load(); b == nil {
		at.CompareAndSwap(nil, new(bucket))
		b = at.Load()
	}
	b.mu.Lock()
	b.requests++
	i := slices.Index(b.hashes[:b.n], hash)
	if isNew = i < 0; isNew {
		if i = b.place(hash); i < 0 {
			return b, nil, false
		}
		b.hashes[i] = hash
	}
	b.counts[i]++
	return b, &b.of[i], isNew
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

// count returns how often a key has come at least, and what is known of it, without its text, if it has a place.
func (s *sketch) count(hash uint64) (of keyInfo, atLeast uint64) {
	if b := s.buckets[hash%buckets].Load(); b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if i := slices.Index(b.hashes[:b.n], hash); i >= 0 {
			of, atLeast = b.of[i], uint64(b.counts[i]-b.errors[i])
		}
	}
	of.key = nil // which the next key of its place overwrites
	return of, atLeast
}

// each tells visit each key with a place. It returns how many requests were counted.
func (s *sketch) each(visit func(hash uint64, of *keyInfo, atLeast uint64)) (requests uint64) {
	for i := range s.buckets {
		if b := s.buckets[i].Load(); b != nil {
			b.mu.Lock()
			for j := range b.n {
				visit(b.hashes[j], &b.of[j], uint64(b.counts[j]-b.errors[j]))
			}
			requests += b.requests
			b.mu.Unlock()
		}
	}
	return requests
}
