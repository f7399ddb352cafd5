package zone

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// QuotaPolicy is a limit made ready for requests, and what follows from it.
// It does not change.
type QuotaPolicy struct {
	Rule    *store.Rule
	Numbers limit.Numbers
	Plan    string        // the zone's name for it; empty without plans
	Lends   bool          // the algorithm's charges are held until the request is over
	Queues  bool          // the store tells each request how long to wait
	MaxWait time.Duration // instead of being refused
	Quota   int64         // what a client may hold at once
	Others  *QuotaPolicy  // of those for whom no slots are reserved; nil if none are

	HeaderZone string // the zone's name as header fields can have it
	PolicyItem string // item of RateLimit-Policy
	ItemPrefix string // begin of the item of RateLimit
	Replenish  string // events per second
}

// PolicyBuilder makes the quota policies of a zone, or of one of its plans.
type PolicyBuilder struct {
	Zone, Plan string
	Limit      limit.Limit
	Salt       uint64
	Reserve    float64 // percent of the slots; 0: none
}

// build makes one.
func (m *PolicyBuilder) build(n limit.Numbers) (*QuotaPolicy, error) {
	limit, err := m.Limit.Resolve(n)
	if err != nil {
		if from := m.Limit.TimeZone().From; from != "" && n.Timezone != m.Limit.TimeZone().Name {
			err = fmt.Errorf("timezone: {%s} is none", from) // what it has instead may be secret
		}
		return nil, err
	}
	g, err := m.make(limit, n)
	if err == nil && m.Reserve > 0 && g.Lends {
		limit.Events = UnreservedSlots(limit.Events, m.Reserve)
		g.Others, err = m.make(limit, n)
	}
	return g, err
}

func (m *PolicyBuilder) make(made algorithms.Limit, n limit.Numbers) (*QuotaPolicy, error) {
	counting, err := m.Limit.Counting()
	if err != nil {
		return nil, err
	}
	rule, err := store.NewRule(m.Zone, counting, made, m.Salt)
	if err != nil {
		return nil, err
	}
	g := &QuotaPolicy{
		Rule: rule, Numbers: n, Plan: m.Plan, MaxWait: made.MaxWait, Quota: made.Events,
		Lends: limit.Lends(m.Limit.Algorithm), Queues: made.Mode == algorithms.ModeQueue,
	}
	if made.Burst > 0 && made.Events > 0 {
		g.Quota = made.Burst
	}
	g.prepareHeaders()
	return g, nil
}

// Policies is where a request's quota policy comes from: fixed is for all requests, or varying
// makes one of what the request brings.
type Policies struct {
	Likely  *QuotaPolicy // one of them; nil if there are none
	Fixed   *QuotaPolicy
	Varying *dynamicPolicies
}

// NewPolicies checks a limit and makes it ready.
func NewPolicies(m PolicyBuilder) (g Policies, err error) {
	if err := m.Limit.Check(); err != nil {
		return g, err
	}
	first, err := m.build(m.Limit.Likely())
	if err != nil {
		return g, err
	}
	if !m.Limit.Varies() {
		return Policies{Likely: first, Fixed: first}, nil
	}
	return Policies{Likely: first, Varying: &dynamicPolicies{PolicyBuilder: m, seed: maphash.MakeSeed()}}, nil
}

func (g *Policies) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	if g.Varying == nil {
		return g.Fixed, nil
	}
	return g.Varying.Resolve(repl)
}

// haveUnknownStates reports whether requests can bring limits that count apart from the likely one.
func (g *Policies) haveUnknownStates() bool {
	if g.Varying == nil {
		return false
	}
	other, err := g.Varying.build(g.Varying.Limit.Unlikely())
	return err != nil || other.Rule.ID() != g.Likely.Rule.ID()
}

const (
	// PolicySlots bounds the policies that are kept ready for a limit that varies.
	PolicySlots = 256

	// policyProbes is how many of them a policy may stand in.
	policyProbes = 4
)

// dynamicPolicies makes policies of what requests bring, and keeps those that were used last. The
// numbers may be chosen by clients: a million different ones take no more memory, and
// cost no more than making each anew.
type dynamicPolicies struct {
	PolicyBuilder
	seed  maphash.Seed
	Slots [PolicySlots]atomic.Pointer[QuotaPolicy]
}

func (v *dynamicPolicies) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	n, err := v.Limit.Numbers(repl)
	if err != nil {
		return nil, err
	}
	hash := maphash.Comparable(v.seed, n)
	put := &v.Slots[(hash+hash>>32%policyProbes)%PolicySlots]
	for i := range uint64(policyProbes) {
		slot := &v.Slots[(hash+i)%PolicySlots]
		g := slot.Load()
		if g == nil {
			put = slot
			break
		}
		if g.Numbers == n {
			return g, nil
		}
	}
	g, err := v.build(n)
	if err == nil {
		put.Store(g)
	}
	return g, err
}

// MaxCost is the largest cost that can ever be granted.
func (g *QuotaPolicy) MaxCost() int64 {
	if g.Lends {
		return min(g.Quota, algorithms.MaxHold)
	}
	return g.Quota
}

// UnreservedSlots is how many slots there are for the others.
func UnreservedSlots(events int64, percent float64) int64 {
	return events - int64(math.Ceil(float64(events)*percent/100))
}
