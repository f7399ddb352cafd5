package lend

import (
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// world is a small fleet at one moment: two processes, a store, and what is under way between
// them.
type world struct {
	tick      int64
	state     algorithms.State
	book      Book
	borrowers [2]Borrower
	asks      []sentAsk    // not decided yet
	answers   []sentAnswer // not received yet

	central algorithms.State // of one limiter that gets what the fleet has admitted

	requests, renewals int // that may still come
	faults             int // that may still happen
	management
}

type sentAsk struct {
	node int
	ask  Ask
}

type sentAnswer struct {
	node   int
	number int64
	answer Answer
}

// explorer goes through all that can happen to a small fleet.
type explorer struct {
	algorithm algorithms.Counter
	params    algorithms.Params
	ticks     int64
	seed      maphash.Seed
	seen      map[uint64]bool
	over      []string
	test      testing.TB
	watcher   *watcher
}

const (
	exploreTick = 12_000 // microseconds

	// explorePeriod lets a loan last for a tick.
	explorePeriod = exploreTick * time.Microsecond / leasePeriods
)

func (w *world) moment() Moment {
	t := time.Duration(w.tick*exploreTick) * time.Microsecond
	return Moment{t, t}
}

func (w *world) clone() *world {
	c := *w
	c.book, c.asks, c.answers = slices.Clone(w.book), slices.Clone(w.asks), slices.Clone(w.answers)
	return &c
}

// admit lets the request of an admission be seen by the one limiter.
func (e *explorer) admit(w *world, how string) {
	var d algorithms.Decision
	if w.central, d = e.algorithm.Take(w.central, e.burst(w.most), simEpoch+w.tick*exploreTick, 1); !d.Allowed {
		e.over = append(e.over, how)
	}
}

// visit goes on from a world to all that can follow.
func (e *explorer) visit(w *world, story string) {
	var h maphash.Hash
	h.SetSeed(e.seed)
	maphash.WriteComparable(&h, [...]int64{
		w.tick, w.state[0], w.state[1], w.state[2], w.central[0], w.central[1], w.central[2],
		int64(w.requests), int64(w.renewals), int64(w.faults), int64(len(w.asks)), int64(len(w.book)),
	})
	maphash.WriteComparable(&h, w.borrowers)
	maphash.WriteComparable(&h, w.management)
	for i := range w.book {
		maphash.WriteComparable(&h, w.book[i])
	}
	for i := range w.asks {
		maphash.WriteComparable(&h, w.asks[i])
	}
	for i := range w.answers {
		maphash.WriteComparable(&h, w.answers[i])
	}
	if len(e.over) > 0 || e.seen[h.Sum64()] {
		return
	}
	e.seen[h.Sum64()] = true
	next := func(what string, node int, change func(*world, string) bool) {
		c := w.clone()
		if then := story + ", " + what + " " + string(rune('A'+node)); change(c, then) {
			e.watch(what, then, w, c)
			e.visit(c, then)
		}
	}
	for n := range w.borrowers {
		if w.requests > 0 {
			next("request", n, func(w *world, story string) bool {
				w.requests--
				b := &w.borrowers[n]
				b.Want(w.moment(), 2) // as if others came too
				switch b.Next(w.moment(), 1, 0) {
				case Reserved:
					if w.rule != "" && !w.unaware[n] {
						e.over = append(e.over, story+", which knew of the "+w.rule)
					}
					b.Spend(w.moment(), 1)
					e.admit(w, story)
				case Begin:
					w.asks = append(w.asks, sentAsk{n, b.Begin(w.moment(), 1)})
				case Alone:
					w.asks = append(w.asks, sentAsk{n, Ask{Cost: 1}})
				default:
					return false
				}
				return true
			})
		}
		if b := &w.borrowers[n]; w.renewals > 0 && !b.Asks() && b.Live(w.moment()) > 0 {
			next("renew", n, func(w *world, _ string) bool {
				w.renewals--
				w.asks = append(w.asks, sentAsk{n, w.borrowers[n].Renew(w.moment())})
				return true
			})
			next("return", n, func(w *world, _ string) bool {
				w.renewals--
				w.asks = append(w.asks, sentAsk{n, w.borrowers[n].Return(w.moment())})
				return true
			})
		}
		if w.borrowers[n].Asks() && w.faults > 0 {
			next("give up", n, func(w *world, _ string) bool {
				w.faults--
				w.borrowers[n].Fail(w.borrowers[n].ask.Number, true)
				return true
			})
		}
		if w.faults > 0 && w.borrowers[n].Live(w.moment()) > 0 {
			next("crash", n, func(w *world, _ string) bool {
				w.faults--
				w.borrowers[n] = *NewBorrower(uint64(n+3), explorePeriod, explorePeriod)
				w.unaware[n] = false
				return true
			})
		}
	}
	for i := range w.asks {
		next("decide", w.asks[i].node, func(w *world, story string) bool {
			sent := w.asks[i]
			w.asks = slices.Delete(w.asks, i, i+1)
			c, key := e.key(w)
			answer := Decide(simEpoch+w.tick*exploreTick, []*Key{key}, []Ask{sent.ask})[0]
			w.state, w.book = c.State, key.Book
			if answer.Allowed && sent.ask.Cost > 0 {
				e.admit(w, story)
			}
			if sent.ask.Borrower > 0 {
				w.answers = append(w.answers, sentAnswer{sent.node, sent.ask.Number, answer})
			}
			return true
		})
		if w.faults > 0 {
			next("lose ask", w.asks[i].node, func(w *world, _ string) bool {
				w.faults--
				w.asks = slices.Delete(w.asks, i, i+1)
				return true
			})
			next("not begun", w.asks[i].node, func(w *world, _ string) bool {
				w.faults--
				sent := w.asks[i]
				w.asks = slices.Delete(w.asks, i, i+1)
				w.borrowers[sent.node].Fail(sent.ask.Number, false)
				return true
			})
		}
	}
	for i := range w.answers {
		next("hear", w.answers[i].node, func(w *world, _ string) bool {
			sent := w.answers[i]
			w.answers = slices.Delete(w.answers, i, i+1)
			if w.borrowers[sent.node].End(w.moment(), sent.number, sent.answer, 0) && sent.answer.Overruled {
				w.unaware[sent.node] = false
			}
			return true
		})
		if w.faults > 0 {
			next("lose answer", w.answers[i].node, func(w *world, _ string) bool {
				w.faults--
				w.answers = slices.Delete(w.answers, i, i+1)
				return true
			})
		}
	}
	e.manage(w, next)
	if w.tick < e.ticks {
		next("tick", 0, func(w *world, _ string) bool {
			w.tick++
			return true
		})
	}
}

// exploreEvents says what the steps are to a borrower.
var exploreEvents = map[string]string{"renew": "begin", "return": "begin", "give up": "fail", "not begun": "fail", "hear": "end", "tick": "time", "notice": "void"}

// watch checks what a step has made of the borrowers.
func (e *explorer) watch(what, story string, before, after *world) {
	if what == "crash" {
		return // it is another borrower
	}
	for n := range before.borrowers {
		from, to := &before.borrowers[n], &after.borrowers[n]
		event := exploreEvents[what]
		switch {
		case *from == *to && what != "tick":
			continue
		case event == "" && to.ask.Number > from.ask.Number:
			event = "begin"
		case event == "":
			event = "request"
		}
		e.watcher.watch(e.test, event, story, from, to, before.moment(), after.moment())
	}
}

// explore explores a bucket of three tokens, of which one comes back with each tick, and returns the
// worlds that were seen and the story of an admission that one limiter would have refused.
func explore(t *testing.T, ticks int64, requests, faults int) (worlds int, over []string) {
	t.Helper()
	return exploreWatched(t, nil, ticks, requests, faults, 0)
}

// exploreWatched is explore with a watcher of each step, and some actions of operators.
func exploreWatched(t *testing.T, watcher *watcher, ticks int64, requests, faults, actions int) (worlds int, over []string) {
	t.Helper()
	before := least
	least = 1
	defer func() { least = before }()
	var a algorithms.TokenBucket
	p, err := a.Prepare(algorithms.Limit{Events: 3, Window: 3 * exploreTick * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	e := &explorer{algorithm: a, params: p, ticks: ticks, seed: maphash.MakeSeed(), seen: make(map[uint64]bool), test: t, watcher: watcher}
	w := &world{requests: requests, renewals: 1, faults: faults, management: management{actions: actions, most: 3}}
	for n := range w.borrowers {
		w.borrowers[n] = *NewBorrower(uint64(n+1), explorePeriod, explorePeriod)
	}
	e.visit(w, "")
	return len(e.seen), e.over
}

// TestExplore goes through all that can happen to two processes and a small bucket. The code that
// decides is the code that ships.
func TestExplore(t *testing.T) {
	worlds, over := explore(t, int64(deep.Steps(1, 2)), 4, 1)
	if len(over) > 0 {
		t.Fatal("admitted too much:", over[0])
	}
	t.Log(worlds, "worlds")
}

// TestExploreFindsMutation: without the rule that what is lent counts as used, the explorer finds
// an admission too many.
func TestExploreFindsMutation(t *testing.T) {
	capped = false
	defer func() { capped = true }()
	if worlds, over := explore(t, 1, 4, 1); len(over) == 0 {
		t.Fatal("found nothing in", worlds, "worlds")
	} else {
		t.Log(over[0])
	}
}
