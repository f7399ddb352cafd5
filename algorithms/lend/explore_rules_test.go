package lend

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// management is what operators do to the key of the small fleet.
type management struct {
	actions int     // that may still come
	rule    string  // the override that holds; empty without one
	unaware [2]bool // whether a process has not noticed the last action
	most    int64   // the burst of the one limiter: the largest of the limits so far, and what a reset leaves with others
}

// exploreBursts are the limits of overrides, in place of three tokens. A ban has none.
var exploreBursts = map[string]int64{"": 3, "ban": 3, "low limit": 1, "high limit": 5}

// burst returns the numbers of a bucket, which differ only in how much fits.
func (e *explorer) burst(n int64) algorithms.Params {
	p := e.params
	if n != 3 {
		var err error
		if p, err = e.algorithm.Prepare(algorithms.Limit{Events: 3, Window: 3 * exploreTick * time.Microsecond, Burst: n}); err != nil {
			e.test.Fatal(err)
		}
	}
	return p
}

// banned is the account of a key that is banned.
type banned struct{ *Counter }

func (b banned) Decide(now, _, more int64) algorithms.Decision {
	return b.Counter.Decide(now, 0, more).Ban(-1)
}

// key returns what the store decides by.
func (e *explorer) key(w *world) (*Counter, *Key) {
	c := &Counter{e.algorithm, e.burst(exploreBursts[w.rule]), w.state}
	key := &Key{Account: c, Book: w.book, Overruled: w.rule != ""}
	if w.rule == "ban" {
		key.Account = banned{c}
	}
	return c, key
}

// manage has operators act, and processes notice it.
func (e *explorer) manage(w *world, next func(what string, node int, change func(*world, string) bool)) {
	act := func(what string, do func(w *world)) {
		next(what, 0, func(w *world, _ string) bool {
			w.actions--
			do(w)
			w.unaware = [2]bool{true, true}
			return true
		})
	}
	if w.actions > 0 {
		for _, rule := range []string{"", "ban", "low limit", "high limit"} {
			if rule != w.rule {
				act("set "+rule, func(w *world) { w.rule, w.most = rule, max(w.most, exploreBursts[rule]) })
			}
		}
		act("reset", func(w *world) {
			w.most += w.book.Held()
			w.state, w.central, w.book = algorithms.State{}, algorithms.State{}, nil
		})
	}
	for n := range w.unaware {
		if w.unaware[n] {
			next("notice", n, func(w *world, _ string) bool {
				w.borrowers[n].Void()
				w.unaware[n] = false
				return true
			})
		}
	}
}
