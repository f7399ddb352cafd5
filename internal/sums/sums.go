// Package sums gathers what keys use, for people who bill by it, and sends it to the store that all instances share.
//
// A zone with the option usage has windows, such as the hours of a day in UTC. For each key and window there are three
// numbers: the requests that have passed, what these have cost, and the requests that the limit has refused. A cost that is
// known late, a refund too, changes the sum of the window in which its request came, however late that is.
//
// A request only adds to a map in this process, under a lock that is held for no call. About once a second, what has
// been gathered goes to the store in batches. A zone without the option costs a comparison with nil.
//
// Each batch is added once. It has the name of its Gatherer and a number, which the store notes with the sums, in one step.
// While it is not certain that a batch has arrived, the same batch is sent again, and nothing else. So neither an answer that is
// lost nor a repetition changes a sum. The courier of package link does this for leases alone, because
// limits forgive a lost refund. Bills do not.
//
// This is no ledger. What is lost, and what is not:
//
//   - A process that is killed loses what it has gathered since it last sent: about a second, or since an outage has begun.
//   - An outage loses nothing: sums wait, and go to the windows that they belong to. A window that the store has already
//     forgotten is lost.
//   - A process that ends as it should sends all before, or says in the log what it could not send.
//   - A failover loses what the store had confirmed and not copied to its replica.
//   - MaxWaiting sums wait at most. After that, requests of new keys are summed in one sum for all of them, which has
//     no key: the total stays exact, and who it was is lost. The log says so.
//
// The windows of a request are by the clock of its instance.
package sums

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// Interval is the time between two batches of a process.
	Interval = time.Second

	// MaxWaiting is how many sums wait in a process.
	MaxWaiting = 100_000

	// sendTimeout bounds the calls of one turn, and lastTimeout those of the last one.
	sendTimeout = 5 * time.Second
	lastTimeout = time.Second
)

// Window is a window of a zone.
type Window struct {
	Zone   string
	Length time.Duration
	Keep   int   // how many windows are kept
	From   int64 // when it begins, in seconds since 1970
}

// Counts is what a request adds.
type Counts struct{ Requests, Cost, Refused int64 }

// of names a sum.
type of struct {
	Window
	kind store.UsageKind
	key  string
}

// Gatherer gathers what keys use. Its methods may be called from many goroutines at once, and of a nil one, which
// gathers nothing.
type Gatherer struct {
	keeper  store.UsageKeeper
	process string
	logger  func() *zap.Logger

	unsent, crowded throttle.Throttle

	mu      sync.Mutex
	sums    map[of]Counts
	queued  int  // sums in queue and batch
	ticking bool // a timer runs
	closed  bool

	sending chan struct{} // has a value while a turn is under way; it guards what follows
	queue   []store.Usage
	batch   []store.Usage // the one that is being sent; empty if none is
	number  int64         // of the last batch
}

// New returns a Gatherer that sends to a store.
func New(keeper store.UsageKeeper, logger func() *zap.Logger) *Gatherer {
	return &Gatherer{keeper: keeper, process: rand.Text(), logger: logger, sums: make(map[of]Counts), sending: make(chan struct{}, 1)}
}

// KeyOf returns a key as sums have it.
func KeyOf(key string) (store.UsageKind, string) {
	if len(key) <= store.MaxUsageKey {
		return store.UsageOfKey, key
	}
	hash := sha256.Sum256([]byte(key))
	return store.UsageOfHash, hex.EncodeToString(hash[:])
}

// Add adds to what a key has used.
func (g *Gatherer) Add(w Window, key string, c Counts) {
	if g == nil || c == (Counts{}) {
		return
	}
	sum := of{Window: w}
	sum.kind, sum.key = KeyOf(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		if g.crowded.Allow() {
			g.logger().Error("usage is lost: requests go on after the store was closed", zap.String("zone", w.Zone))
		}
		return
	}
	before, known := g.sums[sum]
	if !known {
		if len(g.sums)+g.queued >= MaxWaiting {
			sum.kind, sum.key = store.UsageOfRest, ""
			before = g.sums[sum]
			if g.crowded.Allow() {
				g.logger().Warn("too many keys wait for the store: usage of further keys is summed without them",
					zap.String("zone", w.Zone), zap.Int("waiting", MaxWaiting))
			}
		}
		sum.key = strings.Clone(sum.key) // which may be a part of a whole request
		g.tick()
	}
	g.sums[sum] = Counts{before.Requests + c.Requests, before.Cost + c.Cost, before.Refused + c.Refused}
}

// tick plans the next turn. The lock is held.
func (g *Gatherer) tick() {
	if !g.ticking && !g.closed {
		g.ticking = true
		time.AfterFunc(Interval, g.turn)
	}
}

// turn sends what waits, and plans another turn if anything is left.
func (g *Gatherer) turn() {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := g.Send(ctx); err != nil && g.unsent.Allow() {
		g.logger().Warn("usage waits until the store takes it", zap.Int("sums", g.Waiting()), zap.Error(err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ticking = false
	if len(g.sums)+g.queued > 0 {
		g.tick()
	}
}

// Waiting returns how many sums wait.
func (g *Gatherer) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sums) + g.queued
}

// Send sends all that has been gathered so far. If it fails, the next call goes on where it stopped.
func (g *Gatherer) Send(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case g.sending <- struct{}{}:
		defer func() { <-g.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for drained := false; ; {
		if len(g.batch) == 0 {
			if len(g.queue) == 0 && !drained {
				drained = true
				g.drain()
			}
			if len(g.queue) == 0 {
				return nil
			}
			n := min(len(g.queue), store.MaxUsageBatch)
			g.batch, g.queue = g.queue[:n:n], g.queue[n:]
			g.number++
		}
		if err := g.keeper.AddUsage(ctx, g.process, g.number, g.batch); err != nil {
			return err
		}
		g.mu.Lock()
		g.queued -= len(g.batch)
		g.mu.Unlock()
		g.batch = nil
	}
}

// drain moves what was gathered to the queue.
func (g *Gatherer) drain() {
	g.mu.Lock()
	sums := g.sums
	g.sums, g.queued = make(map[of]Counts, min(len(sums), 1024)), len(sums)
	g.mu.Unlock()
	g.queue = make([]store.Usage, 0, len(sums))
	for sum, c := range sums {
		from := time.Unix(sum.From, 0)
		g.queue = append(g.queue, store.Usage{
			Zone: sum.Zone, Length: sum.Length, From: from, Until: from.Add(time.Duration(sum.Keep+1) * sum.Length), Kind: sum.kind, Key: sum.key,
			Requests: c.Requests, Cost: c.Cost, Refused: c.Refused,
		})
	}
}

// Close sends what waits, and plans no more turns. A second call does nothing.
func (g *Gatherer) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	g.mu.Unlock()
	if closed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTimeout)
	defer cancel()
	if err := g.Send(ctx); err != nil {
		g.logger().Error("usage is lost: the store has not taken it before it was closed", zap.Int("sums", g.Waiting()), zap.Error(err))
	}
}
