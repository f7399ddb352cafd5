// Package memorystore keeps all states in this process: the default, for one machine.
//
// States stand in shards, each a pair of maps under one lock. A key is kept as 128
// bits of a hash with a secret seed, so that any key costs the same, the maps of
// numbers hold no pointers for the garbage collector to follow, and no client can
// choose a key that collides.
package memorystore

import (
	"context"
	"errors"
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
	// DefaultMaxKeys bounds the keys of all zones together unless Options say otherwise.
	DefaultMaxKeys = 1_000_000

	// MinMaxKeys is the least bound: below it the shards have no room to work.
	MinMaxKeys = 1024

	// DefaultSweepInterval is how often expired keys are looked for.
	DefaultSweepInterval = time.Minute

	shards = 128

	// sharedBuckets is how many buckets the keys of a zone share when there is no room
	// for buckets of their own.
	sharedBuckets = 64 * shards
)

// Options set up a store. The zero value is the default.
type Options struct {
	// MaxKeys bounds how many keys are kept, for all zones together. Nothing is thrown
	// out to make room, for that would free a client that is refused: new keys share
	// buckets, sharedBuckets of them a zone, until old ones expire. So under a flood of
	// keys no limit is exceeded, but newcomers may be refused for each other's sake.
	// Default: DefaultMaxKeys.
	MaxKeys int

	// SweepInterval is how often expired keys are looked for. Default: DefaultSweepInterval.
	SweepInterval time.Duration

	// Now is the clock, in microseconds since 1970. Default: the machine's. A store with
	// another clock neither sweeps nor renews leases by itself, because timers run by the
	// machine's: call Sweep after the clock was moved.
	Now func() int64

	// Logger is asked for when there is something to say, which is when the store
	// becomes full and when it has room again. Default: silence.
	Logger func() *zap.Logger
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.MaxKeys != 0 && o.MaxKeys < MinMaxKeys:
		return fmt.Errorf("max_keys must be at least %d, got %d", MinMaxKeys, o.MaxKeys)
	case o.SweepInterval < 0:
		return fmt.Errorf("sweep_interval must be positive, got %v", o.SweepInterval)
	}
	return nil
}

// Store implements [store.Store].
type Store struct {
	now      func() int64
	seeds    [2]maphash.Seed
	shards   [shards]shard
	settings atomic.Pointer[Settings]

	logger  func() *zap.Logger
	shared  atomic.Int64 // charges to shared buckets since the last sweep
	holds   store.Holds
	changed chan struct{} // settings
	stop    chan struct{}
	closed  sync.Once
	done    chan struct{}
}

// New makes a store and starts its sweeper, which Close stops. A store with a clock of
// its own has none.
func New(options Options) (*Store, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	s := &Store{
		now:     options.Now,
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		logger:  options.Logger,
		changed: make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = zap.NewNop
	}
	for i := range s.shards {
		s.shards[i].init()
	}
	s.Apply(&Settings{MaxKeys: options.MaxKeys, SweepInterval: options.SweepInterval})
	if s.now == nil {
		s.now = newClock().now
		go s.sweeper()
	} else {
		close(s.done)
	}
	return s, nil
}

// InProcess implements [store.InProcess].
func (*Store) InProcess() {}

// Take implements [store.Store]. It never fails and never waits for anything but other
// requests for the same shards, so it does not look at the context.
func (s *Store) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	var room [8]ticket
	tickets := room[:0]
	var held shardSet
	for i := range checks {
		if checks[i].Cost < 0 {
			return errors.New("cost is negative")
		}
		t, n := s.ticket(&checks[i])
		tickets = append(tickets, t)
		held.add(n)
	}
	held.lock(&s.shards)
	defer held.unlock(&s.shards) // also when an algorithm of somebody else panics
	now, pass := s.now(), true
	for i := range tickets {
		decisions[i] = s.decide(&tickets[i], now)
		decisions[i].At = now
		pass = pass && (decisions[i].Allowed || checks[i].Alone())
	}
	for i := range tickets {
		switch {
		case !decisions[i].Allowed || decisions[i].Exempt:
		case checks[i].Peek, !pass && !checks[i].Independent:
			// What would have passed is not charged, and must not say so.
			decisions[i] = tickets[i].decide(s, now, 0)
			decisions[i].At = now
		case checks[i].Cost > 0:
			tickets[i].charge(s, now, decisions[i])
			if checks[i].Hold != "" {
				s.holds.Add(&checks[i])
			}
		}
	}
	return nil
}

// Adjust implements [store.Store], at once.
func (s *Store) Adjust(corrections ...store.Adjustment) {
	for i := range corrections {
		r := &corrections[i]
		if r.Hold != "" && r.Delta <= -r.Cost {
			s.holds.Remove(r.Hold)
		}
		t, _ := s.ticket(&r.Check)
		changed := t.settle(s, r)
		if r.Done != nil {
			r.Done(changed)
		}
	}
}

// renew renews the leases that are due.
func (s *Store) renew() {
	for _, c := range s.holds.Due(time.Now()) {
		s.each(c.Rule, c.Rule.States(), c.Key, func(shard *shard, id stateID) {
			if kept, ok := shard.leases[id]; ok {
				now := s.now()
				shard.lend(&c, id, kept.leases, c.Rule.At(now).Params, now)
			}
		})
	}
}

// Reset implements [store.Store]. A key in a shared bucket resets the bucket.
func (s *Store) Reset(_ context.Context, rule *store.Rule, key string) error {
	shard, ban := s.beside(rule, key, banPlace)
	_, set := s.beside(rule, key, settingPlace)
	shard.mu.Lock()
	own := shard.settings[set].own
	delete(shard.bans, ban)
	shard.mu.Unlock()
	s.each(rule, rule.States(), key, forget)
	if own.ReplacesLimit(rule) {
		s.each(rule, own.States(rule.States()), key, forget)
	}
	return nil
}

func forget(s *shard, id stateID) {
	delete(s.numbers, id)
	delete(s.logs, id)
	delete(s.leases, id)
}

// each visits the places where a state of a key may be, with their shard locked.
func (s *Store) each(rule *store.Rule, states store.States, key string, visit func(*shard, stateID)) {
	n, own, shared := s.place(rule, states, key)
	shard := &s.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	visit(shard, own)
	visit(shard, shared)
}

// Close implements [store.Store]. Calls under way are finished.
func (s *Store) Close() error {
	s.closed.Do(func() { close(s.stop) })
	<-s.done
	return nil
}

// place finds where a state of a key stands: its shard, its own place and the bucket it
// shares when there is no room. All zones of one key have one shard, so that most
// requests take one lock.
func (s *Store) place(rule *store.Rule, states store.States, key string) (n int, own, shared stateID) {
	hash := maphash.String(s.seeds[0], key)
	of := states.Hash ^ rule.Salt()
	own = stateID{hash ^ of, maphash.String(s.seeds[1], key)<<32 | uint64(zoneOf(rule))}
	shared = stateID{of, hash / shards % (sharedBuckets / shards)}
	return int(hash % shards), own, shared
}
