package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Promote has the spare server take the place of the master after some time, as Sentinels or the nodes of a Cluster
// decide it. It lacks what the master has written in that time. Surely: the master is gone, and comes back as a replica
// after For. Otherwise it goes on as a master for For, with the instances that do not know better: a split brain.
const Promote Kind = "Promote"

var _ = operate(operation{
	Kind: Promote, sort: servers, often: 3,
	fits: on(Sentinels, Cluster),
	draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
		e.Surely = r.IntN(2) == 0
		if r.IntN(2) == 0 {
			e.After = between(r.Uint64(), 0, 500*time.Millisecond)
		}
		e.For = between(r.Uint64(), 0, time.Second)
	},
	begin: (*world).promote,
	tells: append([]string{store.FailureReadonly, store.FailureCluster}, stopTells...),
})

func (w *world) promote(i int, e *Event) {
	s := w.save()
	w.net.at(w.net.now()+e.After, uint64(i), func() { w.takeOver(s, e) })
}

// takeOver has the spare server be the master, with what was saved.
func (w *world) takeOver(s saved, e *Event) {
	old, next := w.host, w.spare()
	moves := slices.ContainsFunc(w.servers, func(h *host) bool {
		return h.redis.View != nil && len(h.redis.View.Leaving)+len(h.redis.View.Coming) > 0
	})
	if next == nil || next.away() || !next.demoted || moves {
		return // nobody can take over, or who moves a slot would have to go on at the new master
	}
	ends := w.restore(next, s)
	w.mu.Lock()
	next.demoted = false
	w.host = next
	w.mu.Unlock()
	demote := func() {
		old.demoted = true
		old.leave(0) // connections break, as Sentinels and nodes of a Cluster have it
		ends()
	}
	if e.Surely {
		old.leave(e.For)
		demote()
	} else {
		w.net.at(w.net.now()+e.For, 0, demote)
	}
	w.tell(old, next, e.For)
}

// tell has others know of a new master, one after the other.
func (w *world) tell(old, next *host, within time.Duration) {
	w.epoch++
	epoch := w.epoch
	for i, s := range w.watchers {
		w.told(i, within, func() {
			if s.sentinel.Epoch < epoch {
				s.sentinel.Switch(next.address, epoch)
			}
		})
	}
	if w.table != nil {
		w.table = w.table.Replaced(old.address, next.address)
		next.redis.View.Learn(w.table)
		w.gossip(within)
	}
}

// gossip has the nodes of a Cluster know its table, one after the other.
func (w *world) gossip(within time.Duration) {
	t := w.table
	for i, h := range w.servers {
		w.told(i, within, func() { h.redis.View.Learn(t) })
	}
}

// told has somebody learn of something, sooner or later.
func (w *world) told(who int, within time.Duration, learn func()) {
	w.net.at(w.net.now()+between(w.net.draw("told", uint64(who)), 0, within+time.Millisecond), uint64(who), learn)
}

// The Sentinels.
const (
	SentinelsGone Kind = "SentinelsGone" // they do not answer: one of them (Key), or all (-1)
	Lie           Kind = "Lie"           // one of them (Key) says that another server is the master; Surely: as if there had been a failover
)

var (
	_ = operate(operation{
		Kind: SentinelsGone, sort: servers, fits: on(Sentinels), tells: stopTells, // of who has not found the master yet
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) { e.Key = r.IntN(sentinels+1) - 1 },
		begin: func(w *world, _ int, e *Event) {
			for i, s := range w.watchers {
				if e.Key < 0 || e.Key == i {
					s.leave(e.For)
				}
			}
		},
	})
	_ = operate(operation{
		Kind: Lie, sort: servers, fits: on(Sentinels), tells: append([]string{store.FailureReadonly}, stopTells...),
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
			e.Key, e.Surely = r.IntN(sentinels), r.IntN(2) == 0
		},
		begin: (*world).lie,
	})
)

func (w *world) lie(_ int, e *Event) {
	s, spare := w.watchers[e.Key].sentinel, w.spare()
	epoch := s.Epoch
	if e.Surely {
		epoch += 10
	}
	s.Switch(spare.address, epoch)
	w.net.at(w.net.now()+e.For, uint64(e.Key), func() { s.Switch(w.host.address, w.epoch) })
}

// Move has the slot of a key go to another node of the Cluster within For, as resharding does: one key after the other.
const Move Kind = "Move"

var _ = operate(operation{
	Kind: Move, sort: servers, often: 4, tells: []string{store.FailureCluster},
	fits: on(Cluster),
	draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
		e.Key = r.IntN(maxKeys)
		e.For = between(r.Uint64(), 0, time.Second)
	},
	begin: (*world).move,
})

func (w *world) move(i int, e *Event) {
	slot := simredis.Slot(w.plan.tag(e.Key))
	from, spare := w.ownerOf(e.Key), w.spare()
	to := w.servers[slices.IndexFunc(w.servers, func(h *host) bool { return h != from && h != spare })]
	if from.demoted || to.demoted || len(from.redis.View.Leaving) > 0 {
		return
	}
	// Each step comes when the one before has succeeded, and again if a node does not answer.
	to.redis.View.Coming[slot] = from.address
	w.step(e.For/10, i, from, to, func() {
		from.redis.View.Leaving[slot] = to.address
		w.step(e.For/10, i, from, to, func() { w.moveKeys(slot, from, to, e.For/2, i) })
	})
}

// step does something after some time, when two nodes answer.
func (w *world) step(after time.Duration, order int, from, to *host, do func()) {
	w.net.at(w.net.now()+after, uint64(order), func() {
		if from.away() || to.away() || from.free > w.net.now() || to.free > w.net.now() {
			w.step(10*time.Millisecond, order, from, to, do)
			return
		}
		do()
	})
}

// moveKeys moves the keys of a slot, and then the slot.
func (w *world) moveKeys(slot uint16, from, to *host, within time.Duration, order int) {
	keys := from.redis.KeysIn(slot)
	if len(keys) > 0 {
		from.redis.Give(keys[0], to.redis)
		w.moved = w.net.now()
		w.step(within/4, order, from, to, func() { w.moveKeys(slot, from, to, within, order) })
		return
	}
	w.table = w.table.Moved(slot, to.address)
	delete(to.redis.View.Coming, slot)
	to.redis.View.Learn(w.table)
	table := w.table
	w.step(within/10, order, from, to, func() {
		delete(from.redis.View.Leaving, slot)
		from.redis.View.Learn(table)
	})
	w.gossip(within)
}
