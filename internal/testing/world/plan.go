package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
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

// The events. Those behind Take are troubles, which last For. Loss is the one that can lose what was acknowledged.
const (
	Take         Kind = "Take"         // a client asks an instance; by Delta the charge is adjusted After
	LoseRequests Kind = "LoseRequests" // connections break before a request arrives, now and then
	LoseReplies  Kind = "LoseReplies"  // they break before a reply arrives
	Delay        Kind = "Delay"        // messages take longer
	Freeze       Kind = "Freeze"       // Redis stands still
	Restart      Kind = "Restart"      // Redis stops, and comes back empty
	Failover     Kind = "Failover"     // Redis stops, and comes back as it was some time (After) before
	Demote       Kind = "Demote"       // Redis becomes a replica, and its address leads to the new master
	Step         Kind = "Step"         // the clock of Redis steps by After
	Full         Kind = "Full"         // Redis has no memory
	Readonly     Kind = "Readonly"     // Redis is a replica for a moment
	NoReplicas   Kind = "NoReplicas"   // Redis has too few replicas
	Unsaved      Kind = "Unsaved"      // Redis cannot write to its disk
	Forbid       Kind = "Forbid"       // the user may not write
)

// The sorts of troubles. A world has those of one sort, or of all.
var (
	unreliable = []Kind{LoseRequests, LoseReplies, Delay, Freeze}
	outages    = []Kind{Restart, Failover, Demote}
	unable     = []Kind{Full, Readonly, NoReplicas, Unsaved, Forbid}
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
		p.Events = append(p.Events, p.drawTake(r, length))
	}
	sorts := [][]Kind{unreliable, unable, outages, {Step}, slices.Concat(unreliable, unable, outages, []Kind{Step}), nil}
	if kinds := sorts[r.IntN(len(sorts))]; kinds != nil {
		for range 1 + r.IntN(3) {
			p.Events = append(p.Events, p.drawTrouble(r, kinds, length))
		}
	}
	p.sort()
	return p
}

func (p *Plan) drawTake(r *rand.Rand, length time.Duration) Event {
	e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Instance: r.IntN(p.Instances), Zone: r.IntN(len(p.Zones)), Key: r.IntN(maxKeys), Cost: 1}
	if r.IntN(4) == 0 {
		e.Cost = r.Int64N(4)
	}
	switch {
	case e.Cost == 0:
	case p.Zones[e.Zone].Algorithm == "concurrency":
		e.Delta, e.After = -e.Cost, between(r.Uint64(), 0, time.Second)
	case r.IntN(5) == 0:
		e.Delta, e.After = -r.Int64N(e.Cost)-1, between(r.Uint64(), 0, time.Second)
	case r.IntN(8) == 0:
		e.Delta, e.After = 1+r.Int64N(3), between(r.Uint64(), 0, time.Second)
	}
	return e
}

func (p *Plan) drawTrouble(r *rand.Rand, kinds []Kind, length time.Duration) Event {
	e := Event{At: between(r.Uint64(), 0, length), Kind: kinds[r.IntN(len(kinds))], Instance: -1, For: between(r.Uint64(), 0, length/2)}
	switch e.Kind {
	case LoseRequests, LoseReplies, Delay:
		e.Instance = r.IntN(p.Instances+1) - 1
	case Failover:
		e.After = between(r.Uint64(), 0, 500*time.Millisecond)
	case Step:
		e.After = between(r.Uint64(), 0, 4*time.Hour) - 2*time.Hour
		if r.IntN(2) == 0 {
			e.After /= 3600
		}
	}
	return e
}

// sort puts the events in order, and no two at the same instant.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
	for i := 1; i < len(p.Events); i++ {
		p.Events[i].At = max(p.Events[i].At, p.Events[i-1].At+1)
	}
}

func drawZone(r *rand.Rand) Zone {
	names := algorithms.Names()
	z := Zone{Algorithm: names[r.IntN(len(names))], Limit: algorithms.Limit{Events: 1 + r.Int64N(10)}}
	if z.Algorithm == "concurrency" {
		z.Limit.Lease = 10 * time.Second
		return z
	}
	z.Limit.Window = time.Hour // so that nothing comes back, and what is charged can be counted
	if r.IntN(2) == 0 {
		z.Limit.Window = between(r.Uint64(), 100*time.Millisecond, 10*time.Second).Truncate(time.Microsecond)
	} else if r.IntN(2) == 0 {
		z.Limit.Events *= 100
	}
	switch {
	case z.Algorithm == "token_bucket" && r.IntN(3) == 0:
		z.Limit.Refill = algorithms.RefillInterval
	case z.Algorithm == "fixed_window" && r.IntN(2) == 0:
		z.Limit.Align = algorithms.AlignFirstRequest
	}
	if a, _ := algorithms.Get(z.Algorithm); r.IntN(3) == 0 && lend.Check(a, z.Limit, time.Second) == nil {
		z.Lend = time.Second
	}
	return z
}
