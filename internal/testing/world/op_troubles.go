package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What happens to messages between an instance, or all (-1), and Redis.
const (
	LoseRequests Kind = "LoseRequests" // connections break before a request arrives, now and then
	LoseReplies  Kind = "LoseReplies"  // they break before a reply arrives
	Delay        Kind = "Delay"        // messages take longer, by After at most; 0: by twice the timeout
)

var (
	_ = operate(operation{Kind: LoseRequests, sort: links, draw: drawLink, tells: lossTells})
	_ = operate(operation{Kind: LoseReplies, sort: links, draw: drawLink, tells: lossTells})
	_ = operate(operation{Kind: Delay, sort: links, draw: drawLink, tells: []string{store.FailureTimeout, store.FailureOpen}})
)

var lossTells = []string{store.FailureNetwork, store.FailureTimeout, store.FailureOpen}

func drawLink(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Instance = r.IntN(p.Instances+1) - 1
}

// What happens to the server. A failover can lose what was acknowledged.
const (
	Freeze   Kind = "Freeze"   // Redis stands still
	Failover Kind = "Failover" // After some time, Redis stops and comes back as it was before that time; Surely: it comes back empty
	Demote   Kind = "Demote"   // Redis becomes a replica, and its address leads to the new master
)

var stopTells = []string{store.FailureNetwork, store.FailureRefused, store.FailureTimeout, store.FailureOpen}

var (
	_ = operate(operation{
		Kind: Freeze, sort: links, tells: []string{store.FailureTimeout, store.FailureOpen},
		begin: func(w *world, _ int, e *Event) { w.host.free = max(w.host.free, w.net.now()+e.For) },
	})
	_ = operate(operation{
		Kind: Failover, sort: servers, often: 2, tells: stopTells,
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
			if e.Surely = r.IntN(2) == 0; !e.Surely {
				e.After = between(r.Uint64(), 0, 500*time.Millisecond)
			}
		},
		begin: (*world).failOver,
	})
	_ = operate(operation{
		Kind: Demote, sort: servers, begin: (*world).demote,
		fits:  on(Single),
		tells: []string{store.FailureReadonly, store.FailureNetwork}, // a call that was under way, or many that find only old connections
	})
)

// saved is what a server had at a time: on the disk that it comes back with, or at its replica.
type saved struct {
	redis *simredis.Server
	at    time.Duration
}

// save saves what the master has.
func (w *world) save() saved {
	s := saved{simredis.New(w.host.clock), w.net.now()}
	s.redis.Copy(w.host.redis)
	return s
}

// restore has a server have what was saved. What the master has charged since then is lost for who decides from now on;
// and all, if a key has come to another node meanwhile, with all that it had. The loss ends when nobody decides any
// more without what was restored.
func (w *world) restore(h *host, s saved) (ends func()) {
	h.redis.Copy(s.redis)
	l := Loss{From: s.at, Since: w.net.now()}
	if w.moved > s.at {
		l.From = 0
	}
	return func() {
		l.To = w.net.now()
		tell(w.history, &w.history.Losses, l)
	}
}

func (w *world) failOver(i int, e *Event) {
	s := w.save()
	if e.Surely {
		s = saved{redis: simredis.New(w.host.clock)}
	}
	w.net.at(w.net.now()+e.After, uint64(i), func() {
		w.host.leave(e.For)
		w.host.redis.Restart()
		w.restore(w.host, s)()
	})
}

func (w *world) demote(int, *Event) {
	h := w.host
	next := newHost(w, h.address)
	next.offset = h.offset
	next.redis.Copy(h.redis)
	h.demoted = true
	w.mu.Lock()
	w.host, w.servers = next, []*host{next}
	w.mu.Unlock()
}

// Redis answers, and does not do what it is asked.
const (
	Full       Kind = "Full"       // it has no memory
	Readonly   Kind = "Readonly"   // it is a replica for a moment
	NoReplicas Kind = "NoReplicas" // it has too few replicas
	Loading    Kind = "Loading"    // it loads what its disk or its master has, and answers each command so
	Forbid     Kind = "Forbid"     // the user may not write
)

var (
	_ = operate(operation{Kind: Full, sort: unable, often: 3, tells: []string{store.FailureOOM}})
	_ = operate(operation{Kind: Readonly, sort: unable, tells: []string{store.FailureReadonly}})
	_ = operate(operation{Kind: NoReplicas, sort: unable, often: 2, tells: []string{store.FailureOther}})
	_ = operate(operation{Kind: Loading, sort: unable, often: 2, tells: []string{store.FailureLoading, store.FailureOpen}})
	_ = operate(operation{Kind: Forbid, sort: unable, tells: []string{store.FailureAuth, store.FailureOpen}})
)

// Step has the clock of Redis step by After.
const Step Kind = "Step"

var _ = operate(operation{
	Kind: Step, sort: clocks,
	draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
		e.After = between(r.Uint64(), 0, 4*time.Hour) - 2*time.Hour
		if r.IntN(2) == 0 {
			e.After /= 3600
		}
	},
	begin: func(w *world, _ int, e *Event) {
		for _, h := range w.servers {
			h.offset += e.After
		}
		tell(w.history, &w.history.clocks, reading{w.net.now(), w.host.offset})
		tell(w.history, &w.history.Losses, Loss{0, w.net.now(), w.net.now()}) // what was charged may count for less, or come back sooner
	},
})

// Kill has an instance be no more. Another one takes its place after For.
const Kill Kind = "Kill"

var _ = operate(operation{
	Kind: Kill, sort: machines, begin: (*world).kill,
	draw: func(r *rand.Rand, p *Plan, e *Event, _ time.Duration) { e.Instance = r.IntN(p.Instances) },
})

// kill ends an instance. Its event is among the pending ones until another one has taken its place.
func (w *world) kill(_ int, e *Event) {
	old := w.instance(e.Instance)
	if !old.over.CompareAndSwap(false, true) {
		w.pending.Done()
		return
	}
	w.history.Killed[old.number] = w.net.now()
	w.breakAll(func(c *conn) bool { return c.in == old })
	w.killed = append(w.killed, old)
	number := w.plan.Instances + len(w.killed)
	go func() {
		defer w.pending.Done()
		time.Sleep(e.For)
		in := w.open(number)
		w.mu.Lock()
		w.instances[e.Instance] = in
		w.mu.Unlock()
	}()
}

// instance returns the one that is at a place now. It may be dead.
func (w *world) instance(place int) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[place]
}
