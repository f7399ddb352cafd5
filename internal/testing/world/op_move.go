package world

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
	if from.demoted || to.demoted || len(from.redis.Leaving()) > 0 {
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
