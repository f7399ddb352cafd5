package zone

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// QuotaPolicy is a limit with its rule for the store and its parts of headers. It does not
// change.
type QuotaPolicy struct {
	Rule    *store.Rule
	Plan    string        // empty without plans
	Slots   bool          // the algorithm counts slots, which are taken until the request is over
	Queues  bool          // the decision says how long the request waits for its turn
	MaxWait time.Duration // how long a request may be held before it is refused
	Window  config.Window
	Events  int64
	Quota   int64 // the most that a client can use at once

	overruled atomic.Pointer[map[algorithms.Limit]*QuotaPolicy] // see Overruled
	part      atomic.Pointer[QuotaPolicy]                       // see Split

	HeaderZone string // the zone's name in headers
	PolicyItem string // the item of RateLimit-Policy
	ItemPrefix string // the beginning of the item of RateLimit
	Replenish  string // events per second
}

// Split returns the policy of one of n instances that count separately.
func (p *QuotaPolicy) Split(n int) *QuotaPolicy {
	rule := p.Rule.Split(n)
	if rule == p.Rule {
		return p
	}
	part := p.part.Load()
	if part == nil || part.Rule != rule {
		part = p.with(rule)
		p.part.Store(part)
	}
	return part
}

// with returns the policy with another rule.
func (p *QuotaPolicy) with(rule *store.Rule) *QuotaPolicy {
	made := newPolicy(p.Plan, rule)
	made.Queues = p.Queues
	return made
}

// newPolicy makes the policy of a rule, in a plan if it has a name.
func newPolicy(plan string, rule *store.Rule) *QuotaPolicy {
	of := rule.Limit()
	p := &QuotaPolicy{
		Rule: rule, Plan: plan, Queues: of.Mode == algorithms.ModeQueue, MaxWait: of.MaxWait,
		Window: config.Window{Duration: caddy.Duration(of.Window), Calendar: of.Calendar}, Events: of.Events, Quota: of.Events,
	}
	_, p.Slots = rule.Algorithm().(algorithms.Leaser)
	if of.Burst > 0 && of.Events > 0 {
		p.Quota = of.Burst
	}
	p.prepareHeaders()
	return p
}

// MaxCost returns the largest cost that can ever be allowed.
func (p *QuotaPolicy) MaxCost() int64 {
	if p.Slots {
		return min(p.Quota, algorithms.MaxSlotCost)
	}
	return p.Quota
}

// Plan is a plan at run time, or the zone's own limit.
type Plan struct {
	Name   string       // empty for the zone's own limit
	Likely *QuotaPolicy // for all requests or, if the limit varies, for plausible numbers; nil if the plan is unlimited

	zone  *Zone
	limit config.Limit // with what a plan takes from the zone's
	made  *madePolicies
}

const (
	// policySlots bounds the cached policies of a limit with placeholders.
	policySlots = 256

	// policyProbes is the number of slots that a policy may be cached in.
	policyProbes = 4
)

// madePolicies are policies for the numbers that requests have brought. Clients may choose the numbers: a million different
// ones take no more memory, and no more time than making each policy again.
type madePolicies [policySlots]atomic.Pointer[QuotaPolicy]

// newPlan checks a limit and makes its plan, which has no name if the limit is the zone's own.
func (z *Zone) newPlan(name string, l config.Limit) (p *Plan, err error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	p = &Plan{Name: name, zone: z, limit: l}
	if p.Likely, err = p.policy(l.Sample()); err != nil {
		return nil, err
	}
	if l.Varies() {
		p.made = new(madePolicies)
		return p, nil
	}
	if of := p.Likely.Rule.Limit(); of.Hold > 0 {
		err = algorithms.CheckHold(of)
	}
	return p, err
}

// makePlans makes the zone's plans.
func (z *Zone) makePlans() (err error) {
	z.planByName = make(map[string]*Plan, len(z.Plan.Plans))
	limits := z.Plan.Limits(&z.Limit)
	for _, name := range slices.Sorted(maps.Keys(z.Plan.Plans)) {
		made := &Plan{Name: name}
		if l, limited := limits[name]; limited {
			if made, err = z.newPlan(name, l); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		z.Plans = append(z.Plans, made)
		z.planByName[z.PlanTemplate.NormalizeName(name)] = made
	}
	switch {
	case z.Plan.Default == nil:
		z.DefaultPlan = z.Own
	case z.Plan.Default.Word != config.Reject:
		z.DefaultPlan = z.planByName[z.PlanTemplate.NormalizeName(z.Plan.Default.Word)]
	}
	return nil
}

// Varies reports whether the numbers of the limit depend on the request.
func (p *Plan) Varies() bool { return p.made != nil }

// Fixed returns the policy for all requests; nil if it depends on them. The receiver may be nil.
func (p *Plan) Fixed() *QuotaPolicy {
	if p == nil || p.Varies() {
		return nil
	}
	return p.Likely
}

// policy makes the policy for the numbers of a request.
func (p *Plan) policy(n config.Numbers) (*QuotaPolicy, error) {
	limit, err := p.limit.Resolve(n)
	if err != nil {
		return nil, err
	}
	algorithm, err := p.limit.FindAlgorithm()
	if err != nil {
		return nil, err
	}
	if _, leases := algorithm.(algorithms.Leaser); !leases {
		limit.Hold = p.zone.Hold
	}
	rule, err := store.NewRule(p.zone.Name, algorithm, limit, p.zone.Salt)
	if err != nil {
		return nil, err
	}
	return newPolicy(p.Name, rule), nil
}

// policySeed keeps clients from choosing numbers with the same hash.
var policySeed = maphash.MakeSeed()

// Resolve returns the policy for a request.
func (p *Plan) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	if !p.Varies() {
		return p.Likely, nil
	}
	n, err := p.limit.Numbers(repl)
	if err != nil {
		return nil, err
	}
	hash := maphash.Comparable(policySeed, n)
	put := &p.made[(hash+(hash>>32)%policyProbes)%policySlots]
	for i := range uint64(policyProbes) {
		slot := &p.made[(hash+i)%policySlots]
		known := slot.Load()
		if known == nil {
			put = slot
			break
		}
		if of := known.Rule.Limit(); of.Events == n.Events && of.Burst == n.Burst {
			return known, nil
		}
	}
	made, err := p.policy(n)
	if err == nil {
		put.Store(made)
	}
	return made, err
}

// hasUnknownStates reports whether requests can bring limits whose states are not those of the likely one. No family of states
// depends on the burst.
func (p *Plan) hasUnknownStates() bool {
	if !p.Varies() || p.limit.MaxEvents.From == "" {
		return false
	}
	limit, algorithm := p.Likely.Rule.Limit(), p.Likely.Rule.Algorithm()
	likely := algorithm.Family(limit)
	limit.Events++
	return algorithm.Family(limit) != likely
}
