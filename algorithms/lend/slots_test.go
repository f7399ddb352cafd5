package lend

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

const (
	slotLease  = slotTick
	slotPeriod = time.Second
	slotTick   = time.Second
)

// slotWorld is a small fleet that keeps slots of one key, at one moment.
type slotWorld struct {
	tick      int64
	store     *algorithms.Leases
	processes [2]slotProcess
	under     []slotMessage // on the way to the store
	answers   []slotMessage // not arrived yet
	made      int           // names

	requests, faults, looks int // that may still happen
}

type slotProcess struct {
	kept Slots
	runs []Slot // of requests that run
}

type slotMessage struct {
	what    string // take, renew, give back, free
	process int
	name    string
	sent    int64
	allowed bool
	free    int64
	at      int64 // when it was decided
}

// slotExplorer goes through all that can happen to a small fleet that keeps slots.
type slotExplorer struct {
	params algorithms.Params
	ticks  int64
	seen   map[uint64]bool
	seed   maphash.Seed
	over   string
	most   int // slots that were kept at once
	rash   bool

	believed int // how many processes they believe that there are
}

func (w *slotWorld) moment() Moment {
	t := time.Duration(w.tick) * slotTick
	return Moment{t, t}
}

func (w *slotWorld) now() int64 { return simEpoch + w.tick*slotTick.Microseconds() }

func (w *slotWorld) clone() *slotWorld {
	c := *w
	c.store, c.under, c.answers = w.store.Clone(), slices.Clone(w.under), slices.Clone(w.answers)
	for i := range c.processes {
		p := &c.processes[i]
		p.kept.idle, p.runs = slices.Clone(p.kept.idle), slices.Clone(p.runs)
	}
	return &c
}

// live is how many slots the store has lent.
func (e *slotExplorer) live(leases *algorithms.Leases, now int64) int64 {
	const all = 1000
	return all - algorithms.Concurrency{}.Decide(leases, algorithms.Params{all, e.params[1]}, now, 0).Remaining
}

func slotName(i int) string { return string(rune('a' + i)) }

// decide carries a message out.
func (e *slotExplorer) decide(w *slotWorld, m slotMessage) {
	var a algorithms.Concurrency
	m.at = w.now()
	switch m.what {
	case "take":
		d := a.Decide(w.store, e.params, w.now(), 1)
		if m.allowed, m.free = d.Allowed, d.Remaining; d.Allowed {
			a.Lease(w.store, e.params, w.now(), 1, m.name)
		}
	case "renew":
		a.Lease(w.store, e.params, w.now(), 1, m.name)
	case "give back":
		w.store.GiveBack(m.name, 1)
		return
	case "free":
		m.free = a.Decide(w.store, e.params, w.now(), 0).Remaining
	}
	w.answers = append(w.answers, m)
}

// hear takes an answer.
func (e *slotExplorer) hear(w *slotWorld, m slotMessage) {
	p, sent := &w.processes[m.process], Moment{time.Duration(m.sent) * slotTick, time.Duration(m.sent) * slotTick}
	switch m.what {
	case "take":
		p.kept.Told(sent, m.at, m.free)
		if slot := NewSlot(m.name, sent, slotLease); m.allowed && slot.lasts(w.moment(), 0) { // else it has timed out
			p.runs = append(p.runs, slot)
		}
	case "renew":
		p.kept.Renewed(m.name, sent, w.moment(), slotLease)
	case "free":
		p.kept.Told(sent, m.at, m.free)
	}
}

func (e *slotExplorer) visit(w *slotWorld, story string) {
	if e.over != "" {
		return
	}
	var h maphash.Hash
	h.SetSeed(e.seed)
	maphash.WriteComparable(&h, [...]int64{w.tick, int64(w.made), int64(w.requests), int64(w.faults), int64(w.looks), int64(len(w.under)), int64(len(w.answers))})
	for i := range w.processes {
		p := &w.processes[i]
		maphash.WriteComparable(&h, [...]int64{int64(p.kept.low), p.kept.free, p.kept.at, int64(p.kept.told.Mono), int64(len(p.kept.idle))})
		for _, slot := range append(slices.Clone(p.kept.idle), p.runs...) {
			maphash.WriteComparable(&h, slot)
		}
	}
	for _, m := range append(slices.Clone(w.under), w.answers...) {
		maphash.WriteComparable(&h, m)
	}
	leases := w.store.Clone()
	for i := range w.made {
		maphash.WriteComparable(&h, leases.GiveBack(slotName(i), 1))
		maphash.WriteComparable(&h, e.live(leases, w.now()))
	}
	hash := h.Sum64()
	if e.seen[hash] {
		return
	}
	e.seen[hash] = true
	running := 0
	for i := range w.processes {
		running += len(w.processes[i].runs)
		e.most = max(e.most, w.processes[i].kept.Len())
	}
	if int64(running) > e.params[0] {
		e.over = story
		return
	}
	next := func(what string, process int, change func(*slotWorld) bool) {
		if c := w.clone(); change(c) {
			e.visit(c, fmt.Sprintf("%s, %s %c", story, what, 'A'+process))
		}
	}
	send := func(w *slotWorld, what string, process int, name string) {
		w.under = append(w.under, slotMessage{what: what, process: process, name: name, sent: w.tick})
	}
	for i := range w.processes {
		if w.requests > 0 {
			next("request", i, func(w *slotWorld) bool {
				w.requests--
				p := &w.processes[i]
				if slot, ok := p.kept.Get(w.moment(), slotLease); ok {
					p.runs = append(p.runs, slot)
					return true
				}
				send(w, "take", i, slotName(w.made))
				w.made++
				return true
			})
		}
		if len(w.processes[i].runs) > 0 {
			next("end", i, func(w *slotWorld) bool {
				p := &w.processes[i]
				slot := p.runs[0]
				p.runs = p.runs[1:]
				if !p.kept.Keep(w.moment(), slot, slotPeriod, e.believed) {
					send(w, "give back", i, slot.Name)
				}
				return true
			})
		}
		if w.looks > 0 && w.processes[i].kept.Len() > 0 {
			next("look", i, func(w *slotWorld) bool {
				w.looks--
				for _, slot := range w.processes[i].kept.Surplus(w.moment(), e.believed) {
					send(w, "give back", i, slot.Name)
				}
				return true
			})
		}
		if kept := w.processes[i].kept.idle; len(kept) > 0 && w.faults > 0 {
			next("renew", i, func(w *slotWorld) bool {
				w.faults--
				send(w, "renew", i, kept[0].Name)
				return true
			})
			next("ask", i, func(w *slotWorld) bool {
				w.faults--
				send(w, "free", i, "")
				return true
			})
			next("crash", i, func(w *slotWorld) bool {
				w.faults--
				w.processes[i] = slotProcess{}
				return true
			})
		}
	}
	for i, m := range w.under {
		next("decide", m.process, func(w *slotWorld) bool {
			w.under = slices.Delete(w.under, i, i+1)
			e.decide(w, m)
			return true
		})
		if w.faults > 0 {
			next("lose", m.process, func(w *slotWorld) bool {
				w.faults--
				w.under = slices.Delete(w.under, i, i+1)
				return true
			})
		}
	}
	for i, m := range w.answers {
		next("hear", m.process, func(w *slotWorld) bool {
			w.answers = slices.Delete(w.answers, i, i+1)
			e.hear(w, m)
			return true
		})
	}
	if w.tick < e.ticks {
		next("tick", 0, func(w *slotWorld) bool {
			w.tick++
			for i := range w.processes {
				p := &w.processes[i]
				for _, slot := range p.runs { // requests that run renew what they have
					algorithms.Concurrency{}.Lease(w.store, e.params, w.now(), 1, slot.Name)
				}
				for j := range p.runs {
					p.runs[j].begin(w.moment(), slotLease)
				}
				for j := range p.kept.idle {
					if e.rash {
						p.kept.idle[j].begin(w.moment(), slotLease)
					}
				}
			}
			return true
		})
	}
}

func exploreSlots(t *testing.T, limit, ticks int64, requests, faults int, rash bool) *slotExplorer {
	t.Helper()
	var a algorithms.Concurrency
	p, err := a.Prepare(algorithms.Limit{Events: limit, Lease: slotLease})
	if err != nil {
		t.Fatal(err)
	}
	e := &slotExplorer{params: p, ticks: ticks, seed: maphash.MakeSeed(), seen: make(map[uint64]bool), rash: rash, believed: 1}
	e.visit(&slotWorld{store: new(algorithms.Leases), requests: requests, faults: faults, looks: deep.Steps(0, 1)}, "")
	return e
}

// TestExploreSlots goes through all that can happen to two processes that keep slots while messages are
// lost or late and processes crash: never more requests run than the limit allows. The processes do not
// even know of each other.
func TestExploreSlots(t *testing.T) {
	deep.OneGoroutine(t)
	t.Parallel()
	e := exploreSlots(t, 2, 1, deep.Steps(3, 4), 1, false)
	if e.over != "" {
		t.Fatal("too many run:", e.over)
	}
	if e.most == 0 {
		t.Error("no slot was kept")
	}
	t.Log(len(e.seen), "worlds")
}

// TestExploreSlotsFindsMutation: if slots were used although their leases have ended, the explorer would
// find too many requests.
func TestExploreSlotsFindsMutation(t *testing.T) {
	deep.OneGoroutine(t)
	t.Parallel()
	e := exploreSlots(t, 2, 1, 4, 0, true)
	if e.over == "" {
		t.Fatal("found nothing in", len(e.seen), "worlds")
	}
	t.Log(len(e.seen), "worlds:", e.over)
}
