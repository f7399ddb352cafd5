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
	left   int // retries
	asked  int64
	work   float64
	over   bool // the client has its answer or has left
}

// ask asks the gate.
func (t *try) ask() {
	p := &gate.Place{}
	t.place = p
	waits := false
	p.Notify = func(granted bool) {
		waits = false
		if granted {
			t.serve(p)
		} else {
			t.again(&t.res.refused)
		}
	}
	if t.gate.Arrive(t.now, p, t.key, t.class) {
		t.serve(p)
		return
	}
	waits = true
	t.after(maxWait, func() {
		if waits && !t.over && t.gate.Leave(t.now, p) {
			t.again(&t.res.refused)
		}
	})
}

// serve lets the request through.
func (t *try) serve(p *gate.Place) {
	t.up.serve(t.work, func(ok bool) {
		if ok {
			t.gate.Done(t.now, p, gate.Useful) // does nothing if the client has left
		} else {
			t.gate.Done(t.now, p, gate.Failed)
		}
		switch {
		case t.over:
		case !ok:
			t.again(&t.res.failed)
		default:
			t.over = true
			if t.counts {
				t.res.good++
				t.run.good[t.now/1e9]++
			}
		}
	})
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
	if !t.gate.Leave(t.now, t.place) {
		t.gate.Done(t.now, t.place, gate.Left)
	}
}

func (t *try) end(why *int) {
	t.over = true
	if t.counts {
		*why++
	}
}
