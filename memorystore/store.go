// Package memorystore keeps all states in this process. It is the default store, for one
// machine.
//
// States are in shards, each a few tables under one lock. A key is stored as a hash with a
// secret seed, see [Store.place]. So every key costs the same, the tables of numbers contain
// no pointers for the garbage collector to follow, and no client can choose a key that
// collides with another.
//
// Most of what a request costs is waiting for cache lines: the shard's, and one or two of the slot. Among 100,000 keys, a map
// of Go takes a third longer than these tables.
package memorystore

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// DefaultMaxKeys is the default of Options.MaxKeys.
	DefaultMaxKeys = 1_000_000

	// MinMaxKeys is the smallest MaxKeys, so that each shard has some room.
	MinMaxKeys = 1024

	// SweepInterval is how often expired keys are removed.
	SweepInterval = time.Minute

	shards = 128

	// sharedBuckets is how many buckets the new keys of a zone share when the store is full.
	sharedBuckets = 64 * shards

	// bucketSpread is how far apart the IDs of these buckets are, so that a table finds them at once.
	bucketSpread = 1 << 64 / (sharedBuckets / shards)
)

// Options set up a store. The zero value is the default.
type Options struct {
	// MaxKeys is how many keys are kept, for all zones together; at least MinMaxKeys. No key
	// is evicted to make room, because that would let refused clients in again. Instead, new
	// keys share buckets, 8192 for each zone, until old keys expire. So under a flood of keys
	// no limit is exceeded, but new clients may be refused because of each other. 0 means
	// DefaultMaxKeys.
	MaxKeys int

	// Now is the clock, in microseconds since 1970. Nil means the machine's clock. A store
	// with another clock neither sweeps nor renews leases by itself, because timers run by
	// the machine's clock; call Sweep and Renew after the clock has moved.
	Now func() int64

	// Logger returns the logger for the lines that the store writes when it becomes full and
	// when it has room again. Nil means no log.
	Logger func() *zap.Logger
}

// Store implements [store.Store].
type Store struct {
	shards   [shards]shard // first, so that each begins at a cache line
	now      func() int64
	seeds    [2]maphash.Seed
	most     atomic.Pointer[int] // keys
	networks sync.Map            // of *store.Networks by keyName, without a key

	logger func() *zap.Logger
	shared atomic.Int64 // charges to shared buckets since the last sweep
	leases store.Leases
	clock  func() time.Time // by which leases are renewed
	stop   chan struct{}
	closed sync.Once
	done   chan struct{}
}

// New opens a store. Unless the options have a clock, it starts a sweeper, which Close stops.
func New(options Options) (*Store, error) {
	if options.MaxKeys != 0 && options.MaxKeys < MinMaxKeys {
		return nil, fmt.Errorf("max_keys must be at least %d, got %d", MinMaxKeys, options.MaxKeys)
	}
	s := &Store{
		now:    options.Now,
		clock:  time.Now,
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		logger: options.Logger,
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = zap.NewNop
	}
	s.Apply(options.MaxKeys)
	if s.now == nil {
		s.now = newClock()
		go s.sweeper()
	} else {
		s.clock = func() time.Time { return time.UnixMicro(s.now()) }
		close(s.done)
	}
	return s, nil
}

// newClock returns a clock in microseconds since 1970 that never goes back: it is the wall clock at the
// start plus the monotonic time since. So setting the wall clock while Caddy runs does not
// change any limit.
func newClock() func() int64 {
	start := time.Now()
	base := start.UnixMicro()
	return func() int64 { return base + time.Since(start).Microseconds() }
}

// Apply changes how many keys are kept: 0 is [DefaultMaxKeys]. Keys above a lower bound stay until they expire. The returned function
// goes back to the number before, unless another one was applied since.
func (s *Store) Apply(maxKeys int) (revert func()) {
	before := s.most.Swap(&maxKeys)
	return func() { s.most.CompareAndSwap(&maxKeys, before) }
}

func (s *Store) maxKeys() int { return cmp.Or(*s.most.Load(), DefaultMaxKeys) }

// Take implements [store.Store]. It fails only for a negative cost. It waits only for other
// requests for the same shards, so it ignores the context.
func (s *Store) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	for i := range checks {
		if checks[i].Cost < 0 {
			return fmt.Errorf("cost must be at least 0, got %d", checks[i].Cost)
		}
	}
	if len(checks) == 1 {
		s.takeOne(&checks[0], &decisions[0])
	} else {
		s.takeAll(checks, decisions)
	}
	return nil
}

// takeOne decides a lone check, as most requests have it.
func (s *Store) takeOne(c *store.Check, d *algorithms.Decision) {
	var t ticket
	var asked [1]store.Asked
	t.prepare(s, c)
	t.shard.mu.Lock()
	defer t.shard.mu.Unlock() // even if an algorithm of another module panics
	now := s.now()
	asked[0].Decision = d
	t.look(s, now, &asked[0])
	store.Decide(now, asked[:])
	t.keep(s, now, &asked[0])
}

func (s *Store) takeAll(checks []store.Check, decisions []algorithms.Decision) {
	var roomForTickets [4]ticket
	var room [4]store.Asked
	tickets, asked := roomForTickets[:0], room[:0]
	var held shardSet
	for i := range checks {
		tickets = append(tickets, ticket{})
		held.add(tickets[i].prepare(s, &checks[i]))
	}
	held.lock(&s.shards)
	defer held.unlock(&s.shards) // as in takeOne
	now := s.now()
	for i := range tickets {
		asked = append(asked, store.Asked{Decision: &decisions[i]})
		tickets[i].look(s, now, &asked[i])
	}
	store.Decide(now, asked)
	for i := range tickets {
		tickets[i].keep(s, now, &asked[i])
	}
}

// Adjust implements [store.Store]. It takes effect at once.
func (s *Store) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		adjustment := &adjustments[i]
		if adjustment.LeaseID != "" && adjustment.Delta <= -adjustment.Cost {
			s.leases.Remove(adjustment.LeaseID)
		}
		var t ticket
		t.prepare(s, &adjustment.Check)
		changed := t.adjust(s, adjustment)
		if adjustment.Done != nil {
			adjustment.Done(changed)
		}
	}
}

// Renew renews the leases that are due, unless they have been given back since. Only a store with
// its own clock needs a caller for it.
func (s *Store) Renew() {
	for _, c := range s.leases.Due(s.clock()) {
		s.visit(c.Rule, c.Rule.States(), c.Key, func(shard *shard, ids ...stateID) {
			for _, id := range ids {
				if kept := shard.leases.get(id); kept != nil && s.leases.Has(c.LeaseID) {
					now := s.now()
					shard.lease(&c, id, kept.value, c.Rule.At(now).Params, now)
				}
			}
		})
	}
}

// Reset implements [store.Store]. A key in a shared bucket resets the bucket.
func (s *Store) Reset(_ context.Context, rule *store.Rule, key string) error {
	shard, id := s.locate(rule, key)
	shard.mu.Lock()
	override := shard.overrides[id].prepared
	shard.bans.delete(id)
	shard.mu.Unlock()
	s.visit(rule, rule.States(), key, forget)
	if override.ReplacesLimit(rule) {
		s.visit(rule, override.States(rule.States()), key, forget)
	}
	return nil
}

// visit visits the IDs under which a state of a key may be, with the shard locked.
func (s *Store) visit(rule *store.Rule, states store.States, key string, do func(*shard, ...stateID)) {
	n, id, shared := s.place(rule, states, key)
	shard := &s.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	do(shard, id, shared)
}

// Close implements [store.Store]. Calls in progress finish normally.
func (s *Store) Close() error {
	s.closed.Do(func() { close(s.stop) })
	<-s.done
	return nil
}

// place returns where a state of a key is: the shard, the state's ID, and the ID of the bucket
// that it shares when the shard is full. The shard depends only on the key and not on the
// zone, so that most requests take one lock.
//
// The ID has 96 bits of the key's hash, because the lowest bit, which is set, is known from the
// shard. So the probability that any two of n keys of a zone have the same ID is n²/2⁹⁷: less than
// 10⁻¹³ for a hundred million keys.
func (s *Store) place(rule *store.Rule, states store.States, key string) (n int, id, shared stateID) {
	hash := maphash.String(s.seeds[0], key)
	family := states.Hash ^ rule.Salt()
	id = stateID{(hash ^ family) | 1, maphash.String(s.seeds[1], key)<<32 | uint64(zoneOf(rule))}
	bucket := hash / shards % (sharedBuckets / shards)
	shared = stateID{(family + bucket*bucketSpread) | 1, bucket}
	return int(hash % shards), id, shared
}
