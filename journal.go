package caddyratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// journal remembers which keys people have heard of lately, so that a flood is told of
// once per key and window, and of not more than some keys a second. It has a fixed size:
// when it is full, keys that are new go untold, and are counted all the same. Keys are kept
// as hashes with a secret seed.
type journal struct {
	paces    [topics]pace
	zones    []*zone.Zone
	seed     maphash.Seed
	shards   [journalShards]journalShard
	unlisted []atomic.Uint64 // by subject: requests of keys for which there was no room
	silent   func(*zone.Zone, topic, silence)
	armed    atomic.Bool
}

const (
	journalShards = 64

	// journalKeys is how many keys a shard remembers; all together take about 3 MB.
	journalKeys = 1024

	// journalPace is how many keys are told of in a second, of each topic.
	journalPace = 50

	// journalPause is how often it is looked which windows have closed.
	journalPause = 2 * time.Second
)

type journalShard struct {
	mu   sync.Mutex
	told map[uint64]entry
}

// entry is a key that people have heard of.
type entry struct {
	until   time.Duration // since the process began
	silent  uint32        // requests since
	subject uint32
}

// subject is what a refusal is about in a zone.
func (f *refusal) subject() int { return f.zone.Index*int(topics) + int(f.topic()) }

// silence is what was not told.
type silence struct{ requests, keys uint64 }

func newJournal(zones []*zone.Zone, silent func(*zone.Zone, topic, silence)) *journal {
	return &journal{zones: zones, seed: maphash.MakeSeed(), unlisted: make([]atomic.Uint64, len(zones)*int(topics)), silent: silent}
}

// first tells whether this is the first time in a window that a key is refused, or
// whether there is room to tell of a ban.
func (j *journal) first(f *refusal) bool {
	subject := f.subject()
	hash := maphash.String(j.seed, f.key) + uint64(subject)*0x9e3779b97f4a7c15 // 2^64 / golden ratio
	shard, now := &j.shards[hash%journalShards], time.Since(processStart)
	shard.mu.Lock()
	e, known := shard.told[hash]
	switch {
	case known && now < e.until && !f.begins: // of bans the store tells once, and an unban lets them begin anew
		e.silent++
		shard.told[hash] = e
		shard.mu.Unlock()
		return false
	case !known && len(shard.told) >= journalKeys:
		shard.mu.Unlock()
		j.unlisted[subject].Add(1)
		return false
	case shard.told == nil:
		shard.told = make(map[uint64]entry)
	}
	// Of bans each is told: refusals that begin one are few.
	tell := f.begins || j.paces[f.topic()].may(now)
	if !tell {
		e.silent++
	}
	// What an entry kept silent in the window before is told of with this one's.
	shard.told[hash] = entry{until: now + f.quietFor(), silent: e.silent, subject: uint32(subject)}
	shard.mu.Unlock()
	j.arm()
	return tell
}

// pace is a second and how often something was done in it.
type pace struct{ atomic.Int64 }

const paceBits = 16 // of the number

// may reports whether it may be done once more.
func (p *pace) may(now time.Duration) bool {
	for {
		was, next := p.Load(), int64(now/time.Second)<<paceBits
		switch {
		case was>>paceBits != next>>paceBits:
			next++
		case was&(1<<paceBits-1) >= journalPace:
			return false
		default:
			next = was + 1
		}
		if p.CompareAndSwap(was, next) {
			return true
		}
	}
}

// arm has the windows that close looked for. There is no timer while there are none.
func (j *journal) arm() {
	if j.armed.CompareAndSwap(false, true) {
		time.AfterFunc(journalPause, func() {
			j.armed.Store(false)
			if j.sweep(time.Since(processStart)) {
				j.arm()
			}
		})
	}
}

// close tells at once what there is to tell.
func (j *journal) close() { j.sweep(1<<63 - 1) }

// sweep forgets the keys whose windows have closed, and tells what was silent about
// them, in one line for each subject.
func (j *journal) sweep(now time.Duration) (more bool) {
	all := make([]silence, len(j.unlisted))
	for i := range j.shards {
		more = j.shards[i].sweep(now, all) || more
	}
	for i, s := range all {
		s.requests += j.unlisted[i].Swap(0)
		if s.requests > 0 {
			j.silent(j.zones[i/int(topics)], topic(i%int(topics)), s)
		}
	}
	return more
}

func (s *journalShard) sweep(now time.Duration, all []silence) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, e := range s.told {
		if now < e.until {
			continue
		}
		if e.silent > 0 {
			all[e.subject].requests += uint64(e.silent)
			all[e.subject].keys++
		}
		delete(s.told, hash)
	}
	if len(s.told) == 0 {
		s.told = nil // maps do not shrink
	}
	return s.told != nil
}
