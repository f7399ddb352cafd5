package world

import (
	"context"
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
	e.Returns = r.IntN(4) == 0
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
	in := w.instance(e.Instance)
	if in.dead() {
		return
	}
	who := client(i)
	c := store.Check{Rule: w.rules[e.Zone], Key: w.plan.keyName(e.Key), Cost: e.Cost, KeyRules: w.plan.Zones[e.Zone].rules()}
	if w.plan.Zones[e.Zone].slots() && e.Cost > 0 {
		c.LeaseID = store.NewLeaseID()
	}
	var d [1]algorithms.Decision
	ctx := context.WithValue(context.Background(), client(0), who)
	asked := time.Now()
	err := in.store.Take(ctx, []store.Check{c}, d[:])
	if wait := d[0].RetryAfter; e.Returns && err == nil && !d[0].Allowed && wait <= 10*time.Second {
		w.wait(wait+time.Duration(1+i)*time.Microsecond, who) // others were told the same
		if c.LeaseID != "" {
			c.LeaseID = store.NewLeaseID() // perhaps Redis has charged the first one, and it is yet to be given back
		}
		err = in.store.Take(ctx, []store.Check{c}, d[:])
	}
	if e.Delta != 0 && err == nil && d[0].Allowed && !d[0].Exempt {
		w.wait(e.After, who)
		in.store.Adjust(store.Adjustment{
			Check: c, At: d[0].Booked(), Turn: d[0].Turn(), Override: d[0].Override, Delta: e.Delta, Known: time.Since(asked),
		})
	}
}
