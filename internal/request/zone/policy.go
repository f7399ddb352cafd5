package zone

import (
	"hash/maphash"
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
	Numbers config.Numbers // of the limit
	Plan    string         // empty without plans
	Slots   bool           // the algorithm counts slots, which are taken until the request is over
	Queues  bool           // the decision says how long the request waits for its turn
	MaxWait time.Duration  // how long a request may be held before it is refused
	Quota   int64          // the most that a client can use at once

	overruled atomic.Pointer[map[algorithms.Limit]*QuotaPolicy] // see Overruled
	part      atomic.Pointer[QuotaPolicy]                       // see Split

	HeaderZone string // the zone's name in headers
	PolicyItem string // the item of RateLimit-Policy
	ItemPrefix string // the beginning of the item of RateLimit
	Replenish  string // events per second
}

// quotaPolicy makes the quota policy of a limit, in a plan if it has a name, for the numbers of a request.
func (z *Zone) quotaPolicy(plan string, l *config.Limit, n config.Numbers) (*QuotaPolicy, error) {
	made, err := l.Resolve(n)
	if err != nil {
		return nil, err
	}
	algorithm, err := l.FindAlgorithm()
	if err != nil {
		return nil, err
	}
	if _, leases := algorithm.(algorithms.Leaser); !leases {
		made.Hold = z.Hold
	}
	rule, err := store.NewRule(z.Name, algorithm, made, z.Salt)
	if err != nil {
		return nil, err
	}
	p := &QuotaPolicy{
		Numbers: n, Plan: plan, Slots: config.CountsSlots(l.Algorithm), Queues: made.Mode == algorithms.ModeQueue,
	}
	p.keep(rule)
	return p, nil
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
	limit := rule.Limit()
	made := &QuotaPolicy{Numbers: p.Numbers, Plan: p.Plan, Slots: p.Slots, Queues: p.Queues}
	made.Numbers.Events, made.Numbers.Burst = limit.Events, limit.Burst
	made.Numbers.Window.Duration, made.Numbers.Window.Calendar = caddy.Duration(limit.Window), limit.Calendar
	made.keep(rule)
	return made
}

// keep makes the policy that of a rule.
func (p *QuotaPolicy) keep(rule *store.Rule) {
	of := rule.Limit()
	p.Rule, p.MaxWait, p.Quota = rule, of.MaxWait, of.Events
	if of.Burst > 0 && of.Events > 0 {
		p.Quota = of.Burst
	}
	p.prepareHeaders()
}

// Policies are the quota policies of one limit: Fixed for all requests, or Varying for a limit
// with placeholders. In the zero Policies all three are nil.
type Policies struct {
	Likely  *QuotaPolicy // Fixed, or a policy for plausible numbers, made at load
	Fixed   *QuotaPolicy
	Varying *dynamicPolicies
}

// policiesOf checks a limit and makes its quota policies.
func (z *Zone) policiesOf(plan string, l config.Limit) (p Policies, err error) {
	if err := l.Check(); err != nil {
		return p, err
	}
	if p.Likely, err = z.quotaPolicy(plan, &l, l.Sample()); err != nil {
		return p, err
	}
	if l.Varies() {
		p.Varying = &dynamicPolicies{zone: z, plan: plan, limit: l}
		return p, nil
	}
	p.Fixed = p.Likely
	if of := p.Fixed.Rule.Limit(); of.Hold > 0 {
		err = algorithms.CheckHold(of)
	}
	return p, err
}

// Resolve returns the quota policy for a request.
func (p *Policies) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	if p.Varying == nil {
		return p.Fixed, nil
	}
	return p.Varying.Resolve(repl)
}

// haveUnknownStates reports whether requests can bring limits whose states are not those of the
// likely one.
func (p *Policies) haveUnknownStates() bool {
	v := p.Varying
	if v == nil {
		return false
	}
	other, err := v.zone.quotaPolicy(v.plan, &v.limit, v.limit.OtherSample())
	return err != nil || other.Rule.ID() != p.Likely.Rule.ID()
}

const (
	// policySlots bounds the cached policies of a limit with placeholders.
	policySlots = 256

	// policyProbes is the number of slots that a policy may be cached in.
	policyProbes = 4
)

// dynamicPolicies makes policies for the numbers that requests bring, and caches some of them.
// Clients may choose the numbers: a million different ones take no more memory, and no more time
// than making each policy again.
type dynamicPolicies struct {
	zone  *Zone
	plan  string
	limit config.Limit
	slots [policySlots]atomic.Pointer[QuotaPolicy]
}

// policySeed keeps clients from choosing numbers with the same hash.
var policySeed = maphash.MakeSeed()

func (d *dynamicPolicies) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	n, err := d.limit.Numbers(repl)
	if err != nil {
		return nil, err
	}
	hash := maphash.Comparable(policySeed, n)
	put := &d.slots[(hash+(hash>>32)%policyProbes)%policySlots]
	for i := range uint64(policyProbes) {
		slot := &d.slots[(hash+i)%policySlots]
		p := slot.Load()
		if p == nil {
			put = slot
			break
		}
		if p.Numbers == n {
			return p, nil
		}
	}
	p, err := d.zone.quotaPolicy(d.plan, &d.limit, n)
	if err == nil {
		put.Store(p)
	}
	return p, err
}

// MaxCost returns the largest cost that can ever be allowed.
func (p *QuotaPolicy) MaxCost() int64 {
	if p.Slots {
		return min(p.Quota, algorithms.MaxSlotCost)
	}
	return p.Quota
}
