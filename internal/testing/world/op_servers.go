package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What happens to the server. Failover and Restart can lose what was acknowledged.
const (
	Freeze   Kind = "Freeze"   // Redis stands still
	Restart  Kind = "Restart"  // Redis stops, and comes back empty
	Failover Kind = "Failover" // Redis stops, and comes back as it was some time (After) before
	Demote   Kind = "Demote"   // Redis becomes a replica, and its address leads to the new master
)

var stopTells = []string{store.FailureNetwork, store.FailureRefused, store.FailureTimeout, store.FailureOpen}

var (
	_ = operate(operation{
		Kind: Freeze, sort: links, tells: []string{store.FailureTimeout, store.FailureOpen},
		begin: func(w *world, _ int, e *Event) { w.host.free = max(w.host.free, w.net.now()+e.For) },
	})
	_ = operate(operation{
		Kind: Restart, sort: servers, tells: stopTells,
		begin: func(w *world, _ int, _ *Event) {
			w.host.breakAll(errReset)
			w.host.redis.Restart()
			w.history.lost(0, w.net.now())
		},
		hold: func(h *host, on bool) { h.down = h.down || on },
	})
	_ = operate(operation{
		Kind: Failover, sort: servers, tells: stopTells,
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
			e.After = between(r.Uint64(), 0, 500*time.Millisecond)
		},
		begin: (*world).failOver,
		hold:  func(h *host, on bool) { h.down = h.down || on },
	})
	_ = operate(operation{
		Kind: Demote, sort: servers, begin: (*world).demote,
		fits:  func(p *Plan) bool { return p.Layout == Single },
		tells: []string{store.FailureReadonly, store.FailureNetwork}, // a call that was under way, or many that find only old connections
	})
)

func (w *world) failOver(i int, e *Event) {
	w.host.breakAll(errReset)
	w.host.redis.Restart()
	w.host.redis.Copy(w.before[i].redis)
	w.history.lost(w.net.now()-e.After, w.net.now())
}

func (w *world) demote(int, *Event) {
	h := w.host
	next := newHost(w)
	next.offset, next.number, next.address = h.offset, w.newNumber(), h.address
	next.redis.Copy(h.redis)
	h.demoted = true
	w.mu.Lock()
	w.host, w.hosts[h.address] = next, next
	w.mu.Unlock()
}
