package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What happens to the machine of an instance.
const (
	Flood   Kind = "Flood"   // Cost clients come at once: more than its processor has time for
	Busy    Kind = "Busy"    // others use its processor, so that each message and each client takes After of it
	Suspend Kind = "Suspend" // it does not run, while its clock does, and messages wait
	Kill    Kind = "Kill"    // it is no more. Another one takes its place after For
)

var (
	_ = operate(operation{
		Kind: Flood, sort: requests, fits: func(p *Plan) bool { return p.Work > 0 }, draw: drawFlood, ask: (*world).flood,
		tells: []string{store.FailureBusy}, // and not one that says something of Redis
	})
	_ = operate(operation{
		Kind: Busy, sort: machines, often: 2, draw: drawBusy, fits: func(p *Plan) bool { return p.Layout == Single }, tells: []string{store.FailureBusy}, // as of a Flood
	})
	_ = operate(operation{
		Kind: Suspend, sort: machines, draw: drawMachine, fits: func(p *Plan) bool { return p.Layout == Single }, tells: []string{store.FailureBusy},
		begin: func(w *world, _ int, e *Event) { w.instance(e.Instance).stand(e.For) },
	})
	_ = operate(operation{
		Kind: Kill, sort: machines, begin: (*world).kill,
		draw: drawMachine,
	})
)

func drawMachine(r *rand.Rand, p *Plan, e *Event, _ time.Duration) { e.Instance = r.IntN(p.Instances) }

func drawBusy(r *rand.Rand, p *Plan, e *Event, length time.Duration) {
	drawMachine(r, p, e, length)
	e.After = between(r.Uint64(), 100*time.Microsecond, 400*time.Microsecond<<r.IntN(8))
}

func drawFlood(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Zone, e.Key, e.Cost = r.IntN(len(p.Zones)), r.IntN(maxKeys), 100+r.Int64N(400)
	if p.Zones[e.Zone].MaxWait > 0 { // each of them asks again and again
		e.Cost /= 5
	}
}

func (w *world) flood(i int, e *Event) {
	one := *e
	one.Cost = 1
	for n := range int(e.Cost) {
		w.pending.Go(func() {
			if w.plan.Whole {
				w.decide(client{i, n}, &one)
			} else {
				w.charge(client{i, n}, &one)
			}
		})
		time.Sleep(slice)
	}
}

// kill ends an instance. Its event is among the pending ones until another one has taken its place.
func (w *world) kill(_ int, e *Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.instances[e.Instance]
	if !old.over.CompareAndSwap(false, true) {
		w.pending.Done()
		return
	}
	tell(w.history, &w.history.Killed, Death{old.number, w.net.now()})
	for _, c := range w.conns {
		if c.in == old {
			c.reset(errReset)
		}
	}
	w.killed = append(w.killed, old)
	w.opened++
	number := w.opened
	go func() {
		defer w.pending.Done()
		time.Sleep(e.For)
		in := w.open(w.t, number)
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
