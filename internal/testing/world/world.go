// Package world runs a whole fleet from one seed: instances with the stores that users have, a Redis with the scripts
// that users have, clients, and the network between them, on a virtual clock. It checks what must hold whatever
// happens. The same seed gives the same history, if nothing else takes the processor: see TestSameSeedSameHistory.
//
// Files op_*.go have what can happen: how it is drawn, and how it is carried out. Files check_*.go have what must hold.
// See [operation] and [promises].
//
// What is real: package redisstore from Store down to the bytes on a connection, go-redis, and the scripts. What is
// not: connections, which are in memory, and Redis itself, which is package simredis. All instances share the clock of
// the machine; what may differ is the clock of Redis, by an offset, a rate and steps.
//
// There is one server, or two with three Sentinels, or a Cluster: see [Layout]. Messages get lost and late. What TCP
// excludes does not happen: the bytes of a connection come in their order, and none twice. So what is lost breaks its
// connection, and what is late holds up what is behind it. Messages on different connections overtake each other.
//
// testing/synctest moves time on when all goroutines wait. Events never fall on the same instant, see [network]. What a
// message meets is drawn from the seed, the time, its bytes, where it goes, and what the goroutine does that sends it, so it is
// the same in whatever order goroutines run at one instant. What is left are goroutines that one event wakes. They go on in the same
// order if nothing but they decides it: there is one processor, no collector of garbage that stops goroutines, no race detector,
// which runs them in another order each time, and nobody who interrupts them, see [Alone] and TestSameSeedSameHistory. Go itself draws
// which of two timers goes off first at one instant, and which case of a select if two are ready. So what waits is to count from when
// its request came, and not from an answer that several have got, and a loop that can find two things to do is to say what comes first.
package world

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// timeout bounds a decision of an instance. The stores have a little more, so that what they do again after a timeout does not
// fall on the instant of something else that they do at round times.
const (
	timeout      = 50 * time.Millisecond
	storeTimeout = timeout + 1013*time.Nanosecond
)

// world is a world that runs.
type world struct {
	plan      *Plan
	net       *network
	host      *host // the master
	servers   []*host
	watchers  []*host         // Sentinels
	table     *simredis.Table // of the Cluster
	epoch     int64           // of the last failover
	moved     time.Duration   // when a key has gone to another node of the Cluster for the last time
	instances []*instance
	rules     []*store.Rule
	history   *History
	pending   sync.WaitGroup
	t         *testing.T

	mu       sync.Mutex
	troubles []Event // those that are on
	conns    []*conn
	killed   []*instance
}

// Alone has worlds run in this process as they need it for one history: on one processor, and garbage is collected
// between worlds only.
func Alone() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
}

// collectAfter is after how many worlds garbage is collected.
const collectAfter = 50

var ran atomic.Uint64

// collect collects garbage. Go looks within 10 ms what memory it can give back, by a goroutine that must not go on in the next world.
func collect() {
	runtime.GC()
	time.Sleep(12 * time.Millisecond)
	align() // it has gone on
}

// Run carries out a plan, and returns what happened.
func Run(t *testing.T, p *Plan) *History {
	if ran.Add(1)%collectAfter == 1 {
		collect()
	}
	h := &History{Plan: p, Left: make(map[place]algorithms.Decision), Killed: make(map[int]time.Duration)}
	var rules []*store.Rule
	for i, z := range p.Zones {
		rules = append(rules, must(z.rule(zoneName(i))))
	}
	align()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, p.Seed) // until this world is over
		w := &world{plan: p, history: h, net: newNetwork(p.Seed), t: t}
		w.build()
		w.rules = rules
		for i := range p.Instances {
			time.Sleep(between(w.net.draw("open", uint64(i)), time.Millisecond, 20*time.Millisecond))
			w.instances = append(w.instances, w.open(i))
		}
		w.run()
		w.last(t)
		time.Sleep(rest) // until what goes on in the background has ended
		h.Length = w.net.now()
		w.net.close()
		h.inOrder()
	})
	return h
}

// rest is how long a world goes on after its last event and its last trouble.
const rest = 15 * time.Second

// run has everything happen, and waits until all have their answers and nothing is wrong any more.
func (w *world) run() {
	began := w.net.now()
	w.history.began = began
	tell(w.history, &w.history.clocks, reading{})
	last := time.Duration(0)
	for i := range w.plan.Events {
		e := &w.plan.Events[i]
		time.Sleep(began + e.At - w.net.now())
		if ask := operations[e.Kind].ask; ask != nil {
			w.pending.Go(func() { ask(w, i, e) })
		} else {
			if e.Kind == Kill {
				w.pending.Add(1)
			}
			w.net.at(w.net.now(), uint64(i), func() { w.begin(i, *e) })
			last = max(last, e.At+e.For)
		}
	}
	w.pending.Wait()
	time.Sleep(max(0, began+last-w.net.now()) + rest)
}

// last asks each instance once more, closes all, and asks a new one what is left of each key.
func (w *world) last(t *testing.T) {
	for i, in := range w.instances {
		for z, r := range w.rules {
			var d [1]algorithms.Decision
			c := store.Check{Rule: r, Key: fmt.Sprintf("rest%d", i), Cost: 1, LeaseID: fmt.Sprintf("rest%d.%d", i, z)}
			err := in.Take(context.Background(), []store.Check{c}, d[:])
			if err != nil || !d[0].Allowed {
				w.history.wrong("instance %d does not come to rest: zone %d answers %v, %v", i, z, d[0].Allowed, err)
			}
		}
	}
	for _, in := range w.instances {
		w.readNetworks(in)
	}
	for _, in := range slices.Concat(w.instances, w.killed) {
		in.close(t)
	}
	fresh := w.open(w.plan.Instances + len(w.killed) + 1)
	for z, r := range w.rules {
		for k := range w.plan.keys() {
			var d [1]algorithms.Decision
			c := store.Check{Rule: r, Key: w.plan.keyName(k), Cost: 1, Peek: true}
			if err := fresh.Take(context.Background(), []store.Check{c}, d[:]); err != nil {
				w.history.wrong("what is left of zone %d, key %d cannot be asked: %v", z, k, err)
			}
			w.history.Left[place{z, k}] = d[0]
		}
	}
	fresh.close(t)
}
