package memorystore

import (
	"math/bits"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// stateID is a hash of zone and key.
type stateID [2]uint64

// shard is a part of all states, under one lock.
type shard struct {
	mu        sync.Mutex
	numbers   map[stateID]number
	logs      map[stateID]record
	leases    map[stateID]lent
	bans      map[stateID]number   // nil until there is one; they do not count towards MaxKeys
	overrides map[stateID]override // nil until there is one, also
	banNames  map[stateID]keyName  // keys of bans, as many as are listed
	peak      int                  // most keys since the maps were made, because maps do not shrink
	swept     int64                // when the shard was last swept
	took      int64                // how long that took, in microseconds
}

// number is the state of a key whose algorithm is a Counter. It contains no pointer.
type number struct {
	state   algorithms.State
	expires int64
}

// record is the state of a key whose algorithm is a Recorder.
type record struct {
	log     *algorithms.Log
	expires int64
}

// lent is the state of a key whose algorithm is a Lender.
type lent struct {
	leases  *algorithms.Leases
	expires int64
}

func (n number) expired(now int64) bool { return n.expires <= now }
func (r record) expired(now int64) bool { return r.expires <= now }
func (l lent) expired(now int64) bool   { return l.expires <= now }

func (s *shard) init() {
	s.numbers = make(map[stateID]number)
	s.logs = make(map[stateID]record)
	s.leases = make(map[stateID]lent)
}

func (s *shard) size() int { return len(s.numbers) + len(s.logs) + len(s.leases) }

// full reports whether there is no room for another key, even after a sweep.
func (s *shard) full(maxKeys int, now int64) bool {
	return s.size() >= maxKeys && (!s.tidy(now) || s.size() >= maxKeys)
}

// fullOfBans reports the same for bans. There may be as many bans as keys.
func (s *shard) fullOfBans(maxKeys int, now int64) bool {
	return len(s.bans) >= maxKeys && (!s.tidy(now) || len(s.bans) >= maxKeys)
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
	s.peak = max(s.peak, s.size()+len(s.bans))
	drop(s.numbers, now)
	drop(s.logs, now)
	drop(s.leases, now)
	drop(s.bans, now)
	drop(s.overrides, now)
	drop(s.banNames, now)
	s.swept = now
	if size := s.size() + len(s.bans); s.peak > 64 && size < s.peak/4 {
		s.numbers, s.logs, s.leases, s.bans = shrunk(s.numbers), shrunk(s.logs), shrunk(s.leases), shrunk(s.bans)
		s.peak = size
	}
}

func drop[V interface{ expired(int64) bool }](kept map[stateID]V, now int64) {
	for id, v := range kept {
		if v.expired(now) {
			delete(kept, id)
		}
	}
}

// shrunk copies a map into one of the right size.
func shrunk[V any](old map[stateID]V) map[stateID]V {
	m := make(map[stateID]V, len(old))
	for id, v := range old {
		m[id] = v
	}
	return m
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
