package memorystore

import (
	"math/bits"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// stateID is zone and key, hashed.
type stateID [2]uint64

// shard is a part of all states under one lock.
type shard struct {
	mu      sync.Mutex
	numbers map[stateID]number
	logs    map[stateID]record
	peak    int   // most keys since the maps were made, for maps do not shrink
	swept   int64 // when
}

// number is the state of a key whose algorithm is a Counter. It holds no pointer.
type number struct {
	state   algorithms.State
	expires int64
}

// record is the state of a key whose algorithm is a Recorder.
type record struct {
	log     *algorithms.Log
	expires int64
}

func (s *shard) init() {
	s.numbers = make(map[stateID]number)
	s.logs = make(map[stateID]record)
}

func (s *shard) size() int { return len(s.numbers) + len(s.logs) }

// full says that there is no room for another key. A shard that seems full is swept
// first, but not more often than pays: what a flood brings expires much later.
func (s *shard) full(maxKeys int, now int64) bool {
	const pause = 100_000 // microseconds
	if s.size() < maxKeys {
		return false
	}
	if now-s.swept < pause && now >= s.swept {
		return true
	}
	s.sweep(now)
	return s.size() >= maxKeys
}

// sweep drops what has expired.
func (s *shard) sweep(now int64) {
	s.peak = max(s.peak, s.size())
	for id, n := range s.numbers {
		if n.expires <= now {
			delete(s.numbers, id)
		}
	}
	for id, r := range s.logs {
		if r.expires <= now {
			delete(s.logs, id)
		}
	}
	s.swept = now
	if size := s.size(); s.peak > 64 && size < s.peak/4 {
		s.numbers, s.logs, s.peak = moved(s.numbers), moved(s.logs), size
	}
}

// moved copies a map into one of the right size.
func moved[V any](old map[stateID]V) map[stateID]V {
	m := make(map[stateID]V, len(old))
	for id, v := range old {
		m[id] = v
	}
	return m
}

// shardSet is a set of shards, locked in order so that no two requests wait for each
// other for ever.
type shardSet [shards / 64]uint64

func (set *shardSet) add(n int) { set[n/64] |= 1 << (n % 64) }

func (set *shardSet) lock(all *[shards]shard) {
	for word, rest := range set {
		for ; rest != 0; rest &= rest - 1 {
			all[word*64+bits.TrailingZeros64(rest)].mu.Lock()
		}
	}
}

func (set *shardSet) unlock(all *[shards]shard) {
	for word, rest := range set {
		for ; rest != 0; rest &= rest - 1 {
			all[word*64+bits.TrailingZeros64(rest)].mu.Unlock()
		}
	}
}
