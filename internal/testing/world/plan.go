package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Plan is all that happens in a world from outside. The rest follows from it and its seed.
type Plan struct {
	Seed      uint64
	Instances int
	Zones     []Zone
	Events    []Event // in the order of time
}

// Zone is a limit.
type Zone struct {
	Algorithm string
	Limit     algorithms.Limit
	Lend      time.Duration // 0: nothing is lent
}

// Kind is what an event is.
type Kind string

// The events. Those below Take are troubles, which last For.
const (
	Take         Kind = "Take"         // a client asks an instance; by Delta the charge is adjusted After
	LoseRequests Kind = "LoseRequests" // connections break before a request arrives, now and then
	LoseReplies  Kind = "LoseReplies"  // they break before a reply arrives
	Delay        Kind = "Delay"        // messages take longer
)

// Event is something that happens at a time.
type Event struct {
	At       time.Duration
	Kind     Kind
	Instance int // of a trouble with the network: -1 for all
	Zone     int
	Key      int
	Cost     int64
	Delta    int64
	After    time.Duration
	For      time.Duration
}

// maxKeys is how many keys a zone has at most.
const maxKeys = 2

// Draw returns the plan of a seed.
func Draw(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 33))
	p := &Plan{Seed: seed, Instances: 1 + r.IntN(3)}
	for range 1 + r.IntN(2) {
		p.Zones = append(p.Zones, drawZone(r))
	}
	length := between(r.Uint64(), time.Second, 4*time.Second)
	for range 10 + r.IntN(40) {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Instance: r.IntN(p.Instances), Zone: r.IntN(len(p.Zones)), Key: r.IntN(maxKeys), Cost: 1}
		if r.IntN(4) == 0 {
			e.Cost = r.Int64N(4)
		}
		if r.IntN(5) == 0 && e.Cost > 0 {
			e.Delta, e.After = -r.Int64N(e.Cost)-1, between(r.Uint64(), 0, time.Second)
		}
		p.Events = append(p.Events, e)
	}
	for range r.IntN(4) {
		e := Event{At: between(r.Uint64(), 0, length), Instance: r.IntN(p.Instances+1) - 1, For: between(r.Uint64(), 0, length/2)}
		e.Kind = []Kind{LoseRequests, LoseReplies, Delay}[r.IntN(3)]
		p.Events = append(p.Events, e)
	}
	p.sort()
	return p
}

// sort puts the events in order, and no two at the same instant.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
	for i := 1; i < len(p.Events); i++ {
		p.Events[i].At = max(p.Events[i].At, p.Events[i-1].At+1)
	}
}

func drawZone(r *rand.Rand) Zone {
	return Zone{
		Algorithm: "token_bucket",
		Limit:     algorithms.Limit{Events: 1 + r.Int64N(10), Window: between(r.Uint64()%1e6*1e3, 100*time.Millisecond, 10*time.Second).Truncate(time.Microsecond)},
	}
}
