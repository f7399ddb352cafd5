package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// drawLent returns the plan of a seed if it is one of those in which a key comes so often that units of it are charged ahead
// again and again, and are spent meanwhile, or are left over because Redis cannot be reached: nil for 14 seeds of 15. In other
// worlds most holds last longer than clients come.
func drawLent(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 40))
	if r.IntN(15) != 0 {
		return nil
	}
	z := Zone{Lend: between(r.Uint64(), 2*algorithms.MinHold, 12*algorithms.MinHold).Truncate(time.Microsecond)}
	z.Algorithm = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"}[r.IntN(5)]
	z.Limit.Window = between(r.Uint64(), 11*z.Lend, 20*z.Lend).Truncate(time.Microsecond) + time.Microsecond
	length, clients := 16*z.Lend, 200+r.IntN(100)
	z.Limit.Events = int64(clients) * int64(z.Limit.Window) / int64(length) * (5 + r.Int64N(10)) / 10
	p := &Plan{Seed: seed, Instances: 2 + r.IntN(2), Zones: []Zone{z}}
	for range clients {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Cost: 1}
		if r.IntN(3) == 0 { // most come to the first instance
			e.Instance = r.IntN(p.Instances)
		}
		if r.IntN(10) == 0 {
			e.Cost = 1 + r.Int64N(3)
		}
		p.Events = append(p.Events, e)
	}
	switch r.IntN(6) {
	case 0, 1:
		p.drawCut(r, z.Lend)
	case 2, 3, 4:
		p.Events = append(p.Events, Event{Kind: Delay, Instance: -1, For: length, After: between(r.Uint64(), z.Lend/10, min(z.Lend, timeout/2))})
	}
	p.sort()
	return p
}

// drawCut has the first instance not reach Redis for longer than it holds units. Most clients that come to it meanwhile cost
// nothing, so that it keeps what it holds, and the others use up the limit.
func (p *Plan) drawCut(r *rand.Rand, lends time.Duration) {
	from, lasts := between(r.Uint64(), 2*lends, 6*lends), between(r.Uint64(), 6*lends, 12*lends)
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case e.At < from || e.At > from+lasts:
		case e.Instance > 0 || r.IntN(2) == 0:
			e.Instance, e.Cost = 1+r.IntN(p.Instances-1), 1+r.Int64N(4)
		case r.IntN(4) > 0:
			e.Cost = 0
		}
	}
	p.Events = append(p.Events, Event{At: from, Kind: []Kind{LoseRequests, LoseReplies}[r.IntN(2)], For: lasts, Surely: true})
}
