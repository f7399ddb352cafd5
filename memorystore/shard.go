package memorystore

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// shard is a part of all states, under one lock.
type shard struct {
	mu        sync.Mutex
	numbers   table[algorithms.State]   // of keys whose algorithm is a Counter; without pointers
	begun     map[stateID]beginning     // of numbers that were reset; nil until there is one
	logs      table[*algorithms.Log]    // of keys whose algorithm is a Recorder
	leases    table[*algorithms.Leases] // of keys whose algorithm is a Leaser
	bans      table[algorithms.State]   // they do not count towards MaxKeys
	overrides map[stateID]override      // nil until there is one; also
	banNames  map[stateID]keyName       // keys of bans, as many as are listed
	swept     int64                     // when the shard was last swept
	took      int64                     // how long that took, in microseconds

	_ [16]byte // so that no two shards share a cache line
}

// beginning is when a state began that was reset.
type beginning struct {
	since   int64 // math.MaxInt64: nothing was charged yet
	expires int64 // then nothing counts any more that was charged before the reset
}

func (b beginning) expired(now int64) bool { return b.expires <= now }

// keep keeps the state of a Counter.
func (s *shard) keep(id stateID, state algorithms.State, now, expires int64) {
	if b, ok := s.begun[id]; ok {
		s.begun[id] = beginning{min(b.since, now), b.expires}
	}
	s.numbers.put(id, state, expires)
}

// forget drops the states under the IDs of a key. What was charged to a Counter before is not given back later.
func forget(s *shard, ids ...stateID) {
	expires := int64(0)
	for _, id := range ids {
		if kept := s.numbers.get(id); kept != nil {
			expires = max(expires, kept.expires, s.begun[id].expires)
		}
		s.numbers.delete(id)
		s.logs.delete(id)
		s.leases.delete(id)
	}
	for _, id := range ids {
		if expires > 0 {
			if s.begun == nil {
				s.begun = make(map[stateID]beginning)
			}
			s.begun[id] = beginning{math.MaxInt64, expires}
		}
	}
}

func (s *shard) size() int { return s.numbers.n + s.logs.n + s.leases.n }

// full reports whether there is no room for another key, even after a sweep.
func (s *shard) full(maxKeys int, now int64) bool {
	return s.size() >= maxKeys && (!s.tidy(now) || s.size() >= maxKeys)
}

// fullOfBans reports the same for bans. There may be as many bans as keys.
func (s *shard) fullOfBans(maxKeys int, now int64) bool {
	return s.bans.n >= maxKeys && (!s.tidy(now) || s.bans.n >= maxKeys)
}

// tidy sweeps the shard if the last sweep is long enough ago, and reports whether it did. The
// keys of a flood expire only much later, so frequent sweeps would find nothing. All shards
// together must not use more than a twentieth of a processor for sweeps.
func (s *shard) tidy(now int64) bool {
	const leastPause = 100_000 // microseconds
	if since := now - s.swept; since >= 0 && since < max(leastPause, s.took*shards*20) {
		return false
	}
	s.sweep(now)
	return true
}

// sweep drops what has expired.
func (s *shard) sweep(now int64) {
	start := time.Now()
	defer func() { s.took = time.Since(start).Microseconds() }()
	s.numbers.drop(now)
	s.logs.drop(now)
	s.leases.drop(now)
	s.bans.drop(now)
	drop(s.overrides, now)
	drop(s.banNames, now)
	drop(s.begun, now)
	s.swept = now
}

func drop[V interface{ expired(int64) bool }](kept map[stateID]V, now int64) {
	for id, v := range kept {
		if v.expired(now) {
			delete(kept, id)
		}
	}
}

// shardSet is a set of shards. It locks them in order, so that requests cannot deadlock.
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
