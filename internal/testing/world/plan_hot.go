package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// drawHot returns the plan of a seed if it is one of those in which a key comes so often, and to several instances, that units of
// it are charged ahead: nil for five seeds of six. In half of them a hold is so short that units are charged ahead again and
// again, and the limit is used up again and again; in the others it lasts longer than a change takes to be known. Meanwhile
// operators change the rules of the key, Redis is late, or the first instance cannot reach it.
func drawHot(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 35))
	if r.IntN(6) != 0 {
		return nil
	}
	z := Zone{Overrides: r.IntN(2) == 0, Lend: []time.Duration{algorithms.MaxHold, algorithms.MaxHold, time.Second}[r.IntN(3)]}
	z.Algorithm = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"}[r.IntN(5)]
	z.Limit = algorithms.Limit{Events: 5 + r.Int64N(40), Window: time.Hour}
	length, clients := between(r.Uint64(), 3*time.Second, 6*time.Second), 40+r.IntN(60)
	if r.IntN(2) == 0 {
		z.Lend = between(r.Uint64(), 2*algorithms.MinHold, 12*algorithms.MinHold).Truncate(time.Microsecond)
		z.Limit.Window = between(r.Uint64(), 11*z.Lend, 20*z.Lend).Truncate(time.Microsecond) + time.Microsecond
		length, clients = 16*z.Lend, 200+r.IntN(100)
		z.Limit.Events = int64(clients) * int64(z.Limit.Window) / int64(length) * (5 + r.Int64N(10)) / 10
	} else if r.IntN(2) == 0 {
		z.BanAfter, z.BanFor = 1+r.Int64N(3), between(r.Uint64(), 5*time.Second, 20*time.Second).Truncate(time.Microsecond)
	}
	p := &Plan{Seed: seed, Instances: 2 + r.IntN(2), Zones: []Zone{z}}
	for range clients {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Cost: 1}
		if r.IntN(2) == 0 { // most come to the first instance
			e.Instance = r.IntN(p.Instances)
		}
		if r.IntN(8) == 0 {
			e.Cost = 1 + r.Int64N(5)
		}
		p.Events = append(p.Events, e)
	}
	if z.Overrides {
		for range 1 + r.IntN(4) {
			p.Events = append(p.Events, p.event(r, length, operators))
		}
	}
	switch r.IntN(5) {
	case 0:
		p.Events = append(p.Events, p.event(r, length, links))
	case 1:
		p.drawCut(r, length)
	case 2, 3:
		p.Events = append(p.Events, Event{Kind: Delay, Instance: -1, For: length, After: between(r.Uint64(), time.Millisecond, timeout/2)})
	}
	for i := range p.Events {
		p.Events[i].Key = 0
	}
	p.sort()
	return p
}

// drawCut has the first instance not reach Redis for about as long as it holds units, or longer. Most clients that come to it
// meanwhile cost nothing, so that it keeps what it holds, and the others use up the limit.
func (p *Plan) drawCut(r *rand.Rand, length time.Duration) {
	from, lasts := between(r.Uint64(), length/8, 3*length/8), between(r.Uint64(), 3*length/8, 3*length/4)
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case e.Kind != Take || e.At < from || e.At > from+lasts:
		case e.Instance > 0 || r.IntN(2) == 0:
			e.Instance, e.Cost = 1+r.IntN(p.Instances-1), 1+r.Int64N(4)
		case r.IntN(4) > 0:
			e.Cost = 0
		}
	}
	p.Events = append(p.Events, Event{At: from, Kind: []Kind{LoseRequests, LoseReplies}[r.IntN(2)], For: lasts, Surely: true})
}
