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
	Numbers config.Numbers
	Window  config.Window
	Quota   int64 // the most that a client can use at once

	variants atomic.Pointer[map[variant]*QuotaPolicy]

	HeaderZone string // the zone's name in headers
	PolicyItem string // the item of RateLimit-Policy
	ItemPrefix string // the beginning of the item of RateLimit
	Replenish  string // events per second
}

// variant is what makes another policy of one: the limit of a network, or how many instances count separately.
type variant struct {
	limit     algorithms.Limit
	instances int
}

// maxVariants bounds the variants that are kept of one policy.
const maxVariants = 64

// Split returns the policy of one of n instances that count separately.
func (p *QuotaPolicy) Split(n int) *QuotaPolicy {
	if n <= 1 {
		return p
	}
	return p.variant(variant{instances: n}, func() *store.Rule { return p.Rule.Split(n) })
}

// Overruled returns the policy with the limit of a network instead of its own. It is nil if the limit is for another
// algorithm, or is not valid here.
func (p *QuotaPolicy) Overruled(n *store.Network) *QuotaPolicy {
	if n.Override.Algorithm != p.Rule.Algorithm().Name() {
		return nil // networks with other algorithms may have the same limit
	}
	return p.variant(variant{limit: n.Override.Limit}, func() *store.Rule { return p.Rule.Overruled(&n.Override) })
}

// variant returns a variant of the policy, and keeps it. It is nil if there is no rule for it.
func (p *QuotaPolicy) variant(of variant, rule func() *store.Rule) (made *QuotaPolicy) {
	known := p.variants.Load()
	if known != nil {
		if made, ok := (*known)[of]; ok {
			return made
		}
	}
	if r := rule(); r != nil {
		made = newPolicy(p.Plan, r)
		made.Queues = p.Queues
	}
	more := map[variant]*QuotaPolicy{of: made}
	if known != nil && len(*known) < maxVariants {
		maps.Copy(more, *known)
	}
	p.variants.Store(&more)
	return made
}

// newPolicy makes the policy of a rule, in a plan if it has a name.
func newPolicy(plan string, rule *store.Rule) *QuotaPolicy {
	of := rule.Limit()
	p := &QuotaPolicy{
		Rule: rule, Plan: plan, Queues: of.Mode == algorithms.ModeQueue, MaxWait: of.MaxWait,
		Numbers: config.Numbers{Events: of.Events, Burst: of.Burst}, Quota: of.Events,
		Window: config.Window{Duration: caddy.Duration(of.Window), Calendar: of.Calendar},
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
func (z *Zone) newPlan(name string, l config.Limit) (*Plan, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	likely, err := l.Resolve(l.Sample())
	if err != nil {
		return nil, err
	}
	algorithm, err := l.FindAlgorithm()
	if err != nil {
		return nil, err
	}
	if !config.CountsSlots(algorithm.Name()) {
		likely.Hold = z.Hold
	}
	rule, err := store.NewRule(z.Name, algorithm, likely, z.Salt)
	if err != nil {
		return nil, err
	}
	p := &Plan{Name: name, Likely: newPolicy(name, rule), limit: l}
	switch {
	case l.Varies():
		p.made = new(madePolicies)
	case likely.Hold > 0:
		err = algorithms.CheckHold(likely)
	}
	return p, err
}

// makePlans makes the zone's plans.
func (z *Zone) makePlans() (err error) {
	z.planByName = make(map[string]*Plan, len(z.Plan.Plans))
	limits := z.Limits()
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
		if known.Numbers == n {
			return known, nil
		}
	}
	likely := p.Likely.Rule
	limit := likely.Limit()
	limit.Events, limit.Burst = n.Events, n.Burst
	rule, err := store.NewRule(likely.Zone(), likely.Algorithm(), limit, likely.Salt())
	if err != nil {
		return nil, err
	}
	made := newPolicy(p.Name, rule)
	put.Store(made)
	return made, nil
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
