package main

import "github.com/seed-161337e5/caddyratelimit/internal/gate"

// try is a request of a client, with its retries.
type try struct {
	*world
	*group
	res    *result
	gate   queue
	place  *gate.Place
	counts bool
	key    uint64
	class  int
	left   int   // retries
	began  int64 // when it got its slot
	work   float64
	over   bool // the client has its answer or has left
	ended  func(good bool)
	job    *job
}

// ask asks the gate.
func (t *try) ask() {
	p := &gate.Place{}
	t.place = p
	waits := false
	p.Notify = func(granted bool) {
		waits = false
		t.after(0, func() {
			if granted {
				t.serve(p)
			} else {
				t.again(&t.res.refused)
			}
		})
	}
	if t.gate.Enter(t.now, p, t.key, t.class) {
		t.serve(p)
		return
	}
	waits = true
	t.after(maxWait, func() {
		if waits && !t.over && !t.gate.Leave(t.now, p) {
			t.again(&t.res.refused)
		}
	})
}

// serve lets the request through.
func (t *try) serve(p *gate.Place) {
	t.began = t.now
	t.after(t.slow, func() {
		if !t.over {
			t.job = t.up.serve(t.work, func(ok bool) { t.answer(p, ok) })
		}
	})
}

// answer is the answer of the upstream, which works on even if the client has left.
func (t *try) answer(p *gate.Place, ok bool) {
	if t.over {
		return
	}
	if !ok {
		t.done(p, gate.Failed)
		t.again(&t.res.failed)
		return
	}
	t.done(p, gate.Useful)
	t.end(&t.res.good)
	if t.counts {
		t.run.good[t.now/1e9]++
	}
}

// again tries again, or gives up for the reason that is counted.
func (t *try) again(why *int) {
	switch {
	case t.over:
	case t.left == 0:
		t.end(why)
	default:
		t.left--
		t.after(int64((0.1+0.4*t.rnd.Float64())*1e9), func() {
			if !t.over {
				t.ask()
			}
		})
	}
}

// leave is the end of the client's patience.
func (t *try) leave() {
	if t.over {
		return
	}
	t.end(&t.res.late)
	if t.stops {
		t.up.stop(t.job)
	}
	if p := t.place; t.gate.Leave(t.now, p) {
		t.after(int64(t.gate.Hold(t.now, p)), func() { t.done(p, gate.Left) })
	}
}

// done gives the slot back.
func (t *try) done(p *gate.Place, a gate.Answer) {
	t.gate.Done(t.now, p, a)
	if f, ok := t.gate.(*front); ok {
		f.served(t.now, t.now-t.began, a)
	}
}

func (t *try) end(why *int) {
	t.over = true
	if t.counts {
		*why++
	}
	if t.ended != nil {
		t.ended(why == &t.res.good)
	}
}
