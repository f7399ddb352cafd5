// Package world runs a whole fleet from one seed: instances with the stores that users have, a Redis with the scripts
// that users have, clients, and the network between them, on a virtual clock. It checks what must hold whatever
// happens. The same seed gives the same history.
//
// What is real: package redisstore from Store down to the bytes on a connection, go-redis, and the scripts. What is
// not: connections, which are in memory, and Redis itself, which is package simredis. All instances share the clock of
// the machine; what may differ is the clock of Redis, by an offset, a rate and steps.
//
// testing/synctest moves time on when all goroutines wait. Events never fall on the same instant. What a message meets
// is drawn from the seed, the time, its bytes, and what the goroutine does that sends it, so it is the same in whatever
// order goroutines run at one instant. What is left are races for a free connection. They have one outcome as well if
// there is one processor, no collector of garbage that stops goroutines, and no race detector, which runs them in
// another order each time: see [Alone].
package world

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// timeout bounds a decision of an instance.
const timeout = 50 * time.Millisecond

// world is a world that runs.
type world struct {
	plan      *Plan
	net       *network
	host      *host
	instances []*redisstore.Store
	rules     []*store.Rule
	history   *History
	pending   sync.WaitGroup

	slow int // by what commands take longer

	mu       sync.Mutex
	troubles []Event // those that are on
}

// Alone has worlds run in this process as they need it for one history: on one processor, and garbage is collected
// between worlds only.
func Alone() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
}

// collectAfter is after how many worlds garbage is collected.
const collectAfter = 20

var ran atomic.Uint64

// Run carries out a plan, and returns what happened.
func Run(t *testing.T, p *Plan) *History {
	if ran.Add(1)%collectAfter == 0 {
		runtime.GC()
	}
	h := &History{Plan: p}
	cryptotest.SetGlobalRandom(t, p.Seed)
	synctest.Test(t, func(t *testing.T) {
		w := &world{plan: p, history: h, net: newNetwork(p.Seed)}
		w.host = newHost(w)
		for i, z := range p.Zones {
			w.rules = append(w.rules, rule(t, i, z))
		}
		for i := range p.Instances {
			time.Sleep(between(w.net.draw("open", i), time.Millisecond, 20*time.Millisecond))
			w.instances = append(w.instances, w.open(t, i))
		}
		w.run()
		for _, s := range w.instances {
			_ = s.Close()
		}
		synctest.Wait()
		w.net.close()
	})
	return h
}

func rule(t *testing.T, i int, z Zone) *store.Rule {
	a, _ := algorithms.Get(z.Algorithm)
	name := fmt.Sprintf("z%d", i)
	var r *store.Rule
	var err error
	if z.Lend > 0 {
		r, err = store.NewLendingRule(name, a, z.Limit, 0, z.Lend)
	} else {
		r, err = store.NewRule(name, a, z.Limit, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens the store of an instance.
func (w *world) open(t *testing.T, i int) *redisstore.Store {
	s, err := redisstore.New(redisstore.Options{
		Address: "redis:6379", Timeout: timeout, PoolSize: 20, Instance: fmt.Sprintf("i%d", i),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx, i) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run has everything happen, and waits until all have their answers.
func (w *world) run() {
	began := w.net.now()
	for i := range w.plan.Events {
		e := &w.plan.Events[i]
		time.Sleep(began + e.At - w.net.now())
		if e.Kind == Take {
			w.pending.Go(func() { w.take(i, e) })
		} else {
			w.begin(*e)
		}
	}
	w.pending.Wait()
	time.Sleep(10 * time.Second)
}

// take is a client.
func (w *world) take(i int, e *Event) {
	c := store.Check{Rule: w.rules[e.Zone], Key: fmt.Sprintf("k%d", e.Key), Cost: e.Cost, Hold: fmt.Sprintf("h%d", i)}
	a := Answer{Event: i, Began: w.net.now()}
	var d [1]algorithms.Decision
	err := w.instances[e.Instance].Take(context.Background(), []store.Check{c}, d[:])
	a.Ended, a.Decision = w.net.now(), d[0]
	if err != nil {
		a.Failure = store.Failure(err)
	}
	w.history.answer(a)
	if e.Delta != 0 && err == nil && d[0].Allowed {
		time.Sleep(e.After)
		adjustment := store.Adjustment{Check: c, At: d[0].Booked(), Turn: d[0].Turn(), Delta: e.Delta}
		w.history.note(w.net.now(), fmt.Sprintf("client %d: adjusts by %d", i, e.Delta))
		w.instances[e.Instance].Adjust(adjustment)
	}
}

// begin has a trouble begin.
func (w *world) begin(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At = w.net.now()
	w.troubles = append(w.troubles, e)
	w.history.note(w.net.now(), fmt.Sprintf("trouble: %s for %v at %d", e.Kind, e.For, e.Instance))
}

// meets reports whether a message of an instance meets a trouble now.
func (w *world) meets(kind Kind, instance int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.net.now()
	for _, t := range w.troubles {
		if t.Kind == kind && (t.Instance < 0 || t.Instance == instance) && now < t.At+t.For {
			return true
		}
	}
	return false
}

// dial makes a connection of an instance.
func (w *world) dial(ctx context.Context, instance int) (net.Conn, error) {
	time.Sleep(between(w.net.draw("dial", instance), 20*time.Microsecond, 200*time.Microsecond))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if w.host.down {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	c := &conn{w: w, instance: instance, host: w.host, changed: make(chan struct{})}
	w.net.at(w.net.now(), 0, func() { c.host.conns = append(c.host.conns, c) })
	return c, nil
}

// way is how long a message takes.
func (w *world) way(c *conn, b []byte, direction string) time.Duration {
	d := between(w.net.draw(direction, c.instance, c.role, bag(b)), 20*time.Microsecond, 200*time.Microsecond)
	if w.meets(Delay, c.instance) {
		d += between(w.net.draw("late", direction, c.instance, c.role, bag(b)), 0, 2*timeout)
	}
	return d
}

// sends has bytes go from an instance to its host. The connection is locked.
func (w *world) sends(c *conn, b []byte) {
	if c.role == 0 {
		c.role = role() // which go-redis dials for, in another goroutine
	}
	c.lastOut = max(c.lastOut+1, w.net.now()+w.way(c, b, "to"))
	lost := w.meets(LoseRequests, c.instance) && w.net.draw("lost", c.instance, c.role, bag(b))%2 == 0
	w.net.at(c.lastOut, bag(b)+c.role+uint64(c.instance), func() {
		if lost {
			c.reset(errReset)
		} else {
			c.host.receive(c, b)
		}
	})
}

// replies has a reply go back.
func (w *world) replies(c *conn, b []byte) {
	c.lastIn = max(c.lastIn+1, w.net.now()+service+w.way(c, b, "from"))
	lost := w.meets(LoseReplies, c.instance) && w.net.draw("lost reply", c.instance, c.role, bag(b))%2 == 0
	w.net.at(c.lastIn, bag(b)+c.role+uint64(c.instance), func() {
		if lost {
			c.reset(errReset)
		} else {
			c.arrive(b)
		}
	})
}

// ran notes what a host has carried out.
func (w *world) ran(h *host, c *conn, args []string, reply []byte) {
	w.history.note(w.net.now(), fmt.Sprintf("redis: %s of %d, %x", args[0], c.instance, bag(reply)))
}
