package stats

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// maxBans is how many running bans of a zone are known.
const maxBans = 1024

// Bans knows the bans of a zone that began on this instance.
type Bans struct {
	begun   atomic.Uint64
	mu      sync.Mutex
	running map[uint64]Ban // by hashes of keys, because clients choose how long these are
}

// banSeed keeps clients from choosing keys with the same hash.
var banSeed = maphash.MakeSeed()

// Ban is a ban that began on this instance.
type Ban struct {
	Key                string // as much of it as logs show
	RemoteIP, ClientIP string // of the request whose refusal began the ban
	Network            string // that is the key, if it is one
	Until              time.Time
}

// Count counts a ban that begins.
func (b *Bans) Count() { b.begun.Add(1) }

// Begun returns how many bans have begun.
func (b *Bans) Begun() uint64 { return b.begun.Load() }

// Begin notes that a ban of a key runs, if there is room.
func (b *Bans) Begin(key string, ban Ban) {
	hash := maphash.String(banSeed, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.running[hash]; !known && len(b.running) >= maxBans {
		return
	}
	if b.running == nil {
		b.running = make(map[uint64]Ban)
	}
	b.running[hash] = ban
}

// End forgets the ban of a key, and reports whether it was known.
func (b *Bans) End(key string) (known bool) {
	hash := maphash.String(banSeed, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known = b.running[hash]
	delete(b.running, hash)
	return known
}

// Ended returns the bans that are over at a time, and forgets them. Next is the end of the first
// ban that runs on; the zero time if there is none.
func (b *Bans) Ended(now time.Time) (ended []Ban, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash, ban := range b.running {
		switch {
		case !ban.Until.After(now):
			ended = append(ended, ban)
			delete(b.running, hash)
		case next.IsZero() || ban.Until.Before(next):
			next = ban.Until
		}
	}
	return ended, next
}
