// Package topk finds the most frequent keys, in memory that does not grow with the number of keys
// and fast enough for the request path.
//
// It is the Space-Saving algorithm of A. Metwally, D. Agrawal and A. El Abbadi (Efficient
// Computation of Frequent and Top-k Elements in Data Streams, 2005), divided into buckets like a
// set-associative cache: the hash of a key selects its bucket. A bucket has few places, so that it
// is searched quickly, and a lock of its own. A new key in a full bucket replaces the key with the
// lowest count and takes over its count. The part that it took over may belong to other keys, so
// it is kept as the error of the count.
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
	mu     sync.Mutex
	n      int
	hashes [ways]uint64
	counts [ways]uint32 // never too low
	errors [ways]uint32 // by how much a count may be too high
	length [ways]int
	keys   [ways][]byte // the beginnings of the keys; a new key reuses the memory of its place
	plans  [ways]string // the last plan of each key
}

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
	i := slices.Index(b.hashes[:b.n], hash)
	if i < 0 {
		i = b.place()
		b.hashes[i], b.length[i] = hash, len(key)
		b.keys[i] = append(b.keys[i][:0], key[:min(len(key), MaxKey)]...)
		b.plans[i] = plan
	}
	if plan != "" && b.plans[i] != plan {
		b.plans[i] = plan
	}
	if b.counts[i]+1 != 0 {
		b.counts[i]++
	}
	b.mu.Unlock()
}

// place returns a place for a new key: a free one, or that of the key with the lowest count.
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

// keyInfo is what a bucket has of a key.
type keyInfo struct {
	key    []byte
	length int
	plan   string
	Count
}

// each calls visit for each key. The keyInfo is only valid during the call.
func (s *sketch) each(visit func(hash uint64, t keyInfo)) {
	for i := range s.buckets {
		b := s.buckets[i].Load()
		if b == nil {
			continue
		}
		b.mu.Lock()
		for j := range b.n {
			visit(b.hashes[j], keyInfo{b.keys[j], b.length[j], b.plans[j], b.count(j)})
		}
		b.mu.Unlock()
	}
}

// plan returns the last plan of a key, or "" if it had none or is not counted.
func (s *sketch) plan(hash uint64) string {
	b := s.buckets[hash%buckets].Load()
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.hashes[:b.n], hash); i >= 0 {
		return b.plans[i]
	}
	return ""
}

// unlisted returns how often a key without a place may have come.
func (s *sketch) unlisted() (most uint64) {
	for i := range s.buckets {
		b := s.buckets[i].Load()
		if b == nil {
			continue
		}
		b.mu.Lock()
		if b.n == ways {
			most = max(most, uint64(slices.Min(b.counts[:])))
		}
		b.mu.Unlock()
	}
	return most
}

// count returns the count of a key.
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
	return Count{Error: uint64(slices.Min(b.counts[:]))} // a key with a higher count would have a place
}

func (b *bucket) count(i int) Count {
	return Count{AtLeast: uint64(b.counts[i] - b.errors[i]), Error: uint64(b.errors[i])}
}
