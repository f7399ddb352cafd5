// Package topk finds out which keys come most often, in memory that does not grow with
// the number of keys and at a cost that suits a request path.
//
// It is Space-Saving by A. Metwally, D. Agrawal and A. El Abbadi (Efficient Computation
// of Frequent and Top-k Elements in Data Streams, 2005) in buckets, as a cache has them:
// a key's hash says in which of them it may stand. A bucket has few places, so that they
// are searched quickly, under a lock of its own. A key that finds its bucket full takes
// the place of the one that came least often, together with its count: what it came by
// in this way may belong to others, and is noted as its error.
//
// What this is worth: the true count of a key is between AtLeast and AtLeast + Error of
// what is told of it. A key with more than 1/16 of the requests of its bucket is always
// listed, and there are 32 buckets: a key with a few thousandths of all requests is
// missed only where many like it share its bucket.
package topk

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	buckets = 32
	ways    = 16

	// MaxKey is how much of a key is kept, in bytes. Longer ones are told apart by their
	// hashes, and listed by their beginning.
	MaxKey = 256
)

// sketch counts keys, which it knows by their hashes. The zero value is empty.
type sketch struct {
	buckets [buckets]atomic.Pointer[bucket]
}

// bucket has places for keys. Those from n on are free.
type bucket struct {
	mu     sync.Mutex
	n      int
	hashes [ways]uint64
	counts [ways]uint32 // never too low
	errors [ways]uint32 // by how much a count may be too high
	length [ways]int
	keys   [ways][]byte // the beginnings; whoever takes a place takes its memory
}

func (s *sketch) add(hash uint64, key string) {
	at := &s.buckets[hash%buckets]
	b := at.Load()
	if b == nil {
		b = new(bucket)
		if !at.CompareAndSwap(nil, b) {
			b = at.Load()
		}
	}
	b.add(hash, key)
}

func (b *bucket) add(hash uint64, key string) {
	b.mu.Lock()
	i := slices.Index(b.hashes[:b.n], hash)
	if i < 0 {
		i = b.place()
		b.hashes[i], b.length[i] = hash, len(key)
		b.keys[i] = append(b.keys[i][:0], key[:min(len(key), MaxKey)]...)
	}
	if b.counts[i]+1 != 0 {
		b.counts[i]++
	}
	b.mu.Unlock()
}

// place makes room for a key.
func (b *bucket) place() (i int) {
	if b.n < ways {
		b.n++
		return b.n - 1
	}
	for j, n := range b.counts {
		if n < b.counts[i] {
			i = j
		}
	}
	b.errors[i] = b.counts[i]
	return i
}

// keyInfo is what a bucket knows of a key.
type keyInfo struct {
	key    []byte
	length int
	Count
}

// each visits all keys. What it tells of them is good for the visit.
func (s *sketch) each(visit func(hash uint64, t keyInfo)) {
	for i := range s.buckets {
		b := s.buckets[i].Load()
		if b == nil {
			continue
		}
		b.mu.Lock()
		for j := range b.n {
			visit(b.hashes[j], keyInfo{b.keys[j], b.length[j], b.count(j)})
		}
		b.mu.Unlock()
	}
}

// count tells how often a key came.
func (s *sketch) count(hash uint64) Count {
	b := s.buckets[hash%buckets].Load()
	if b == nil {
		return Count{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.hashes[:b.n], hash); i >= 0 {
		return b.count(i)
	}
	if b.n < ways {
		return Count{}
	}
	return Count{Error: uint64(slices.Min(b.counts[:]))} // else it would be among them
}

func (b *bucket) count(i int) Count {
	return Count{AtLeast: uint64(b.counts[i] - b.errors[i]), Error: uint64(b.errors[i])}
}
