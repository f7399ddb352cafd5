package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Promote has the spare server take the place of the master, as Sentinels or the nodes of a Cluster decide it. It lacks
// what the master has written in the last After. Surely: the master is gone, and comes back as a replica after For. Otherwise it goes
// on as a master for For, with the instances that do not know better: a split brain.
const Promote Kind = "Promote"

var _ = operate(operation{
	Kind: Promote, sort: servers, often: 3,
	fits: func(p *Plan) bool { return p.Layout != Single },
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

// recall is what a master had at a time.
type recall struct {
	redis  *simredis.Server
	number int
	at     time.Duration
}

// remember keeps what a failover will come back with.
func (w *world) remember(event int) {
	s := simredis.New(w.host.clock)
	s.Copy(w.host.redis)
	w.before[event] = recall{s, w.host.number, w.net.now()}
}

func (w *world) promote(i int, e *Event) {
	old, next, from := w.host, w.spare(), w.before[i]
	moves := slices.ContainsFunc(w.servers(), func(h *host) bool {
		return h.redis.View != nil && len(h.redis.View.Leaving)+len(h.redis.View.Coming) > 0
	})
	if next == nil || next.away() || !next.demoted || moves {
		return // nobody can take over, or who moves a slot would have to go on at the new master
	}
	next.redis.Copy(from.redis)
	next.number = w.newNumber()
	tell(w.history, &w.history.forks, fork{from.number, next.number, from.at})
	if from.number != old.number {
		tell(w.history, &w.history.forks, fork{old.number, next.number, 0}) // the master of that time was replaced since
	}
	w.mu.Lock()
	next.demoted = false
	w.host = next
	w.mu.Unlock()
	demote := func() {
		old.demoted = true
		old.breakAll(errReset) // as Sentinels and nodes of a Cluster have it
	}
	if e.Surely {
		old.leave(e.For)
		old.demoted = true
	} else {
		w.net.at(w.net.now()+e.For, 0, demote)
	}
	w.tell(old, next, e.For)
}

// tell has others know of a new master, one after the other.
func (w *world) tell(old, next *host, within time.Duration) {
	w.epoch++
	epoch := w.epoch
	for i, s := range w.watchers() {
		w.net.at(w.net.now()+between(w.net.draw("told", i), 0, within+time.Millisecond), uint64(i), func() {
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
	for i, h := range w.servers() {
		w.net.at(w.net.now()+between(w.net.draw("told", i), 0, within+time.Millisecond), uint64(i), func() { h.redis.View.Learn(t) })
	}
}

// The Sentinels.
const (
	SentinelsGone Kind = "SentinelsGone" // they do not answer: one of them (Key), or all (-1)
	Lie           Kind = "Lie"           // one of them (Key) says that another server is the master; Surely: as if there had been a failover
)

var (
	_ = operate(operation{
		Kind: SentinelsGone, sort: servers, fits: sentinelled, tells: stopTells, // of who has not found the master yet
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) { e.Key = r.IntN(sentinels+1) - 1 },
		begin: func(w *world, _ int, e *Event) {
			for i, s := range w.watchers() {
				if e.Key < 0 || e.Key == i {
					s.leave(e.For)
				}
			}
		},
	})
	_ = operate(operation{
		Kind: Lie, sort: servers, fits: sentinelled, tells: append([]string{store.FailureReadonly}, stopTells...),
		draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
			e.Key, e.Surely = r.IntN(sentinels), r.IntN(2) == 0
		},
		begin: (*world).lie,
	})
)

func sentinelled(p *Plan) bool { return p.Layout == Sentinels }

func (w *world) lie(_ int, e *Event) {
	if w.plan.Layout != Sentinels {
		return
	}
	s, spare := w.watchers()[e.Key].sentinel, w.spare()
	epoch := s.Epoch
	if e.Surely {
		epoch += 10
	}
	s.Switch(spare.address, epoch)
	w.net.at(w.net.now()+e.For, uint64(e.Key), func() { s.Switch(w.host.address, w.epoch) })
}

// fork says that a master began with what another one had at a time.
type fork struct {
	from, to int
	at       time.Duration
}

// decidedBy returns the number of the master that has decided; -1 if that is not clear.
func (h *History) decidedBy(a *Answer) int {
	if h.deciders == nil {
		h.deciders = make(map[decider]int)
		for i := range h.Commands {
			c := &h.Commands[i]
			by := decider{c.Clock, c.Instance}
			if number, known := h.deciders[by]; known && number != c.Host {
				h.deciders[by] = -1
			} else {
				h.deciders[by] = c.Host
			}
		}
	}
	if number, known := h.deciders[decider{a.Decision.At, a.Instance}]; known {
		return number
	}
	return -1
}

// decider is a command: the time on the clock of its server, and the instance that has sent it.
type decider struct {
	clock    int64
	instance int
}

// unknownTo reports whether the master that has made one decision cannot know of another one, because one of
// them began with what the other had before.
func (h *History) unknownTo(a, charged *Answer) bool {
	if len(h.forks) == 0 {
		return false
	}
	by, of := h.decidedBy(a), h.decidedBy(charged)
	for _, f := range h.forks {
		late, later := h.when(charged) > f.at-time.Microsecond, h.when(a) > f.at-time.Microsecond
		switch {
		case by < 0 || of < 0:
			return late
		case by == of:
		case of == f.from && late, by == f.from && later && late, by == f.to && h.movedLate(charged, f):
			return true
		}
	}
	return false
}

// movedLate reports whether a charge has come to a master, or back to it, when it was too late for who took its place.
func (h *History) movedLate(charged *Answer, f fork) bool {
	return slices.ContainsFunc(h.moves, func(m moved) bool {
		return m.to == f.from && m.at >= h.when(charged) && m.at > f.at-time.Microsecond && m.of(h.Plan, charged)
	})
}

// Move has the slot of a key go to another node of the Cluster within For, as resharding does: one key after the other.
const Move Kind = "Move"

var _ = operate(operation{
	Kind: Move, sort: servers, often: 4, tells: []string{store.FailureCluster},
	fits: func(p *Plan) bool { return p.Layout == Cluster },
	draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
		e.Key = r.IntN(maxKeys)
		e.For = between(r.Uint64(), 0, time.Second)
	},
	begin: (*world).move,
})

func (w *world) move(i int, e *Event) {
	if w.plan.Layout != Cluster {
		return
	}
	slot := simredis.Slot(w.plan.tag(e.Key))
	from, to := w.ownerOf(e.Key), w.hosts[serverAddress(0)]
	for n := 0; to == from || to == w.spare(); n++ {
		to = w.hosts[serverAddress(n)]
	}
	if from.demoted || to.demoted || len(from.redis.View.Leaving) > 0 {
		return
	}
	// Each step comes when the one before has succeeded, and again if a node does not answer.
	to.redis.View.Coming[slot] = from.address
	w.step(w.net.now()+e.For/10, i, from, to, func() {
		from.redis.View.Leaving[slot] = to.address
		w.step(w.net.now()+e.For/10, i, from, to, func() { w.moveKeys(slot, from, to, e.For/2, i) })
	})
}

// step does something at a time at which two nodes answer.
func (w *world) step(at time.Duration, order int, from, to *host, do func()) {
	w.net.at(at, uint64(order), func() {
		if from.away() || to.away() || from.free > w.net.now() || to.free > w.net.now() {
			w.step(w.net.now()+10*time.Millisecond, order, from, to, do)
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
		tell(w.history, &w.history.moves, moved{keys[0], from.number, to.number, w.net.now()})
		w.step(w.net.now()+within/4, order, from, to, func() { w.moveKeys(slot, from, to, within, order) })
		return
	}
	w.table = w.table.Moved(slot, to.address)
	delete(to.redis.View.Coming, slot)
	to.redis.View.Learn(w.table)
	table := w.table
	w.step(w.net.now()+within/10, order, from, to, func() {
		delete(from.redis.View.Leaving, slot)
		from.redis.View.Learn(table)
	})
	w.gossip(within)
}

// moved says that a key of Redis has gone from one master to another.
type moved struct {
	key      string
	from, to int
	at       time.Duration
}

// of reports whether the key of an answer has gone.
func (m *moved) of(p *Plan, a *Answer) bool {
	return strings.Contains(m.key, "{"+p.tag(a.Key)+"}") && strings.Contains(m.key, fmt.Sprintf("z%d", a.Zone))
}
