package world

import (
	"math/rand/v2"
	"time"
)

// Kill has an instance be no more. Another one takes its place after For.
const Kill Kind = "Kill"

var _ = operate(operation{
	Kind: Kill, sort: machines, begin: (*world).kill,
	draw: func(r *rand.Rand, p *Plan, e *Event, _ time.Duration) { e.Instance = r.IntN(p.Instances) },
})

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
