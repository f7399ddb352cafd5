package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Take is a client that asks the store of an instance, without a limiter. The charge is adjusted by Delta, After the
// answer.
const Take Kind = "Take"

var _ = operate(operation{Kind: Take, sort: requests, often: 10, draw: drawTake, ask: (*world).take})

func drawTake(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Zone, e.Key, e.Cost = r.IntN(len(p.Zones)), r.IntN(maxKeys), 1
	if r.IntN(4) == 0 {
		e.Cost = r.Int64N(4)
	}
	switch {
	case e.Cost == 0:
	case p.Zones[e.Zone].slots():
		e.Delta, e.After = -e.Cost, between(r.Uint64(), 0, time.Second)
	case r.IntN(5) == 0:
		e.Delta, e.After = -r.Int64N(e.Cost)-1, between(r.Uint64(), 0, time.Second)
	case r.IntN(8) == 0:
		e.Delta, e.After = 1+r.Int64N(3), between(r.Uint64(), 0, time.Second)
	}
}

func (w *world) take(i int, e *Event) {
	c := store.Check{Rule: w.rules[e.Zone], Key: keyName(e.Key), Cost: e.Cost, LeaseID: fmt.Sprintf("h%d", e.At)}
	a := Answer{Event: i, Began: w.net.now()}
	var d [1]algorithms.Decision
	s := w.instances[e.Instance].store
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	a.Ended, a.Decision = w.net.now(), d[0]
	if err != nil {
		a.Failure, a.Err = store.Failure(err), err.Error()
	}
	w.history.answer(a)
	if e.Delta != 0 && err == nil && d[0].Allowed {
		time.Sleep(e.After)
		adjustment := store.Adjustment{Check: c, At: d[0].Booked(), Turn: d[0].Turn(), Delta: e.Delta}
		w.history.note(w.net.now(), fmt.Sprintf("client %d: adjusts by %d", i, e.Delta))
		w.history.adjusted(i, w.net.now())
		s.Adjust(adjustment)
	}
}
