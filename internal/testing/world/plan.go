package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Plan is all that happens in a world from outside. The rest follows from it and its seed.
type Plan struct {
	Seed      uint64
	Even      bool // messages take equally long
	Layout    Layout
	Instances int
	Whole     bool // instances have a limiter, and not only a store
	Addresses int  // keys are addresses of this version: 4, or 6 with a /64 for each; 0: they are none
	Zones     []Zone
	Events    []Event // in the order of time
}

// Zone is a limit.
type Zone struct {
	Algorithm string
	Limit     algorithms.Limit
	Lend      time.Duration // for how long units may be held; 0: none are
	Overrides bool          // keys may have overrides
	BanAfter  int64         // refusals in ten seconds; 0: only people ban keys
	BanFor    time.Duration

	// Of whole instances: see [config.Zone].
	OnError string
	DryRun  bool
	Judges  bool // the status of the response decides whether it is charged
	MaxWait time.Duration
	Paying  int64 // the limit of clients with another plan; 0: there are no plans
	Body    bool  // the body of the response says the cost, and not a header
}

// Event is something that happens at a time. What each field means is said where the [operation] of its kind is.
type Event struct {
	At       time.Duration
	Kind     Kind
	Instance int // of a trouble: -1 for all
	Zone     int
	Key      int // or a network: see [Plan.selector]
	Sort     string
	Cost     int64
	Delta    int64
	After    time.Duration
	For      time.Duration // how long a trouble lasts
	Returns  bool          // a client that is refused comes back after the wait that it was told
	Surely   bool          // a trouble with the network meets each message, and not each second one or so
}

// maxKeys is how many keys a zone has, if they are no addresses.
const maxKeys = 2

// maxNetworks is how many networks have overrides.
const maxNetworks = 2

// Draw returns the plan of a seed.
func Draw(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 33))
	if r.IntN(6) == 0 {
		return drawHot(seed, r)
	}
	p := &Plan{Seed: seed, Instances: 1 + r.IntN(3), Whole: r.IntN(3) == 0}
	p.Layout = []Layout{Single, Single, Sentinels, Cluster}[r.IntN(4)] // often a single server
	hot := r.IntN(3) == 0                                              // all is about one key
	for range 1 + r.IntN(2) {
		if hot && len(p.Zones) == 1 {
			break
		}
		z := drawZone(r)
		if p.Whole {
			z.drawPolicies(r)
		}
		p.Zones = append(p.Zones, z)
	}
	length := between(r.Uint64(), time.Second, 4*time.Second)
	p.add(10+r.IntN(40), r, length, requests)
	if hot {
		for i := range p.Events {
			p.Events[i].Key = 0
		}
	}
	// What is held and what operators do meet in few worlds.
	lends := func(z Zone) bool { return z.Lend > 0 && z.Overrides }
	if r.IntN(3) == 0 || slices.ContainsFunc(p.Zones, lends) {
		p.add(1+r.IntN(4), r, length, operators)
	}
	p.drawTroubles(r, length)
	if p.Whole && r.IntN(2) == 0 {
		p.drawAddresses(r, length, hot)
	}
	p.sort()
	return p
}

// drawTroubles draws troubles of one sort, of all, or none.
func (p *Plan) drawTroubles(r *rand.Rand, length time.Duration) {
	of := []sort{links, servers, unable, clocks, machines}
	if r.IntN(4) > 0 {
		of = []sort{sort(r.IntN(int(sorts)))}
	}
	if of[0].trouble() {
		p.add(1+r.IntN(3), r, length, of...)
	}
}

// add draws some events of some sorts.
func (p *Plan) add(events int, r *rand.Rand, length time.Duration, of ...sort) {
	for range events {
		p.Events = append(p.Events, p.event(r, length, of...))
	}
}

// sort puts the events in order, and no two at nearly the same instant.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
	for i := 1; i < len(p.Events); i++ {
		p.Events[i].At = max(p.Events[i].At, p.Events[i-1].At+time.Microsecond)
	}
}

// some reports whether a plan has events of operations.
func (p *Plan) some(of func(o *operation) bool) bool {
	for i := range p.Events { // which are large, and looked at often
		if of(operations[p.Events[i].Kind]) {
			return true
		}
	}
	return false
}

// has reports whether a plan has events of some sorts.
func (p *Plan) has(of ...sort) bool {
	return p.some(func(o *operation) bool { return slices.Contains(of, o.sort) })
}

// hasKind reports whether a plan has events of some kinds.
func (p *Plan) hasKind(of ...Kind) bool {
	return p.some(func(o *operation) bool { return slices.Contains(of, o.Kind) })
}

// doubtful reports whether it can be unknown if something was carried out. A script that meets a right that is missing
// may have written before.
func (p *Plan) doubtful() bool {
	return p.has(links, servers, machines) || p.hasKind(Forbid)
}

// slotLease is the lease of zones that count slots.
const slotLease = 10 * time.Second

func drawZone(r *rand.Rand) Zone {
	names := algorithms.Names()
	z := Zone{Algorithm: names[r.IntN(len(names))], Limit: algorithms.Limit{Events: 1 + r.Int64N(10)}}
	if z.slots() {
		z.Limit.Lease = slotLease
		return z
	}
	z.Limit.Window = time.Hour // so that nothing comes back, and what is charged can be counted
	if r.IntN(2) == 0 {
		z.Limit.Window = between(r.Uint64(), 100*time.Millisecond, 200*time.Millisecond<<r.IntN(6)).Truncate(time.Microsecond)
	} else if r.IntN(2) == 0 {
		z.Limit.Events *= 100
	}
	switch {
	case z.Algorithm == "token_bucket" && r.IntN(3) == 0:
		z.Limit.Refill = algorithms.RefillInterval
	case z.Algorithm == "fixed_window" && r.IntN(2) == 0:
		z.Limit.Align = algorithms.AlignFirstRequest
	}
	z.drawLend(r)
	z.drawKeyRules(r)
	return z
}

func (z *Zone) drawLend(r *rand.Rand) {
	if r.IntN(2) == 0 {
		for _, hold := range []time.Duration{algorithms.MaxHold, time.Second, 100 * time.Millisecond, algorithms.MinHold} {
			if z.lends(hold) && (hold < algorithms.MaxHold || r.IntN(3) == 0) {
				z.Lend = hold
				return
			}
		}
	}
}

// lends reports whether units of the limit can be held for so long.
func (z *Zone) lends(hold time.Duration) bool {
	a, _ := algorithms.Get(z.Algorithm)
	limit := z.Limit.Over(algorithms.Limit{Hold: hold})
	_, err := a.Prepare(limit)
	return err == nil && algorithms.Prepays(limit)
}

func (z *Zone) drawKeyRules(r *rand.Rand) {
	z.Overrides = r.IntN(3) == 0
	if r.IntN(5) == 0 || z.Lend > 0 && r.IntN(4) == 0 { // refusals that count, and instances that decide alone
		z.BanAfter, z.BanFor = 1+r.Int64N(5), between(r.Uint64(), time.Second, 5*time.Second).Truncate(time.Microsecond)
	}
}

// drawPolicies draws what only a limiter knows of a zone.
func (z *Zone) drawPolicies(r *rand.Rand) {
	z.OnError = []string{config.AllowOnError, config.DenyOnError, config.LocalOnError}[r.IntN(3)]
	z.DryRun = r.IntN(4) == 0
	z.Judges = r.IntN(6) == 0
	if z.Algorithm == "leaky_bucket" && z.Lend == 0 && r.IntN(2) == 0 {
		z.Limit.Mode, z.Limit.Window = algorithms.ModeQueue, between(r.Uint64(), time.Second, 10*time.Second).Truncate(time.Microsecond)
	}
	if (r.IntN(6) == 0 || z.slots() && r.IntN(2) == 0) && !z.queues() {
		z.Paying = 1 + r.Int64N(20)
	}
	z.Body = r.IntN(3) == 0 && !z.slots()
	if r.IntN(3) == 0 {
		z.MaxWait = between(r.Uint64(), 0, 2*time.Second).Truncate(time.Microsecond)
		if z.queues() {
			z.Limit.MaxWait = z.MaxWait
		}
	}
}

// queues reports whether requests wait for their turn.
func (z *Zone) queues() bool { return z.Limit.Mode == algorithms.ModeQueue }

// ownLimits returns the limits that a zone has at one time or another, by plans and by configs.
func (p *Plan) ownLimits(zone int) []int64 {
	all := []int64{p.Zones[zone].Limit.Events}
	if paying := p.Zones[zone].Paying; paying > 0 {
		all = append(all, paying)
	}
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == Reload && e.Zone == zone && e.Cost > 0 {
			all = append(all, e.Cost)
		}
	}
	return all
}

// limits returns these, and those that networks have.
func (p *Plan) limits(zone int) []int64 {
	all := p.ownLimits(zone)
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == Override && e.Key < 0 && e.Zone == zone && e.Sort == limited && p.Addresses != 0 {
			all = append(all, e.Cost)
		}
	}
	return all
}

// rules are what takes precedence over the limit for single keys.
func (z *Zone) rules() *store.KeyRules {
	if !z.Overrides && z.BanAfter == 0 {
		return nil
	}
	rules := &store.KeyRules{Overrides: z.Overrides}
	if z.BanAfter > 0 {
		rules.Ban = &store.Ban{For: z.BanFor, After: z.BanAfter, Within: banWithin}
	}
	return rules
}

// slots reports whether the zone counts slots, which requests hold until they are over.
func (z *Zone) slots() bool { return z.Algorithm == "concurrency" }

// anchored reports whether a window begins with a charge.
func (z *Zone) anchored() bool {
	return z.Limit.Refill == algorithms.RefillInterval || z.Limit.Align == algorithms.AlignFirstRequest
}

// rule is the zone as stores have it.
func (z *Zone) rule(name string) (*store.Rule, error) {
	a, _ := algorithms.Get(z.Algorithm)
	limit := z.Limit
	limit.Hold = z.Lend
	return store.NewRule(name, a, limit, 0)
}
