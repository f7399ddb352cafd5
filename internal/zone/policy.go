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

// PolicyBuilder makes the quota policies of a zone, or of one of its plans.
type PolicyBuilder struct {
	Zone, Plan string
	Limit      config.Limit
	Salt       uint64
	Lend       time.Duration // how long units may be held: see [algorithms.Limit]
}

// build makes the quota policy for the numbers of a request.
func (b *PolicyBuilder) build(n config.Numbers) (*QuotaPolicy, error) {
	made, err := b.Limit.Resolve(n)
	if err != nil {
		return nil, err
	}
	algorithm, err := b.Limit.FindAlgorithm()
	if err != nil {
		return nil, err
	}
	if _, leases := algorithm.(algorithms.Leaser); !leases {
		made.Hold = b.Lend
	}
	rule, err := store.NewRule(b.Zone, algorithm, made, b.Salt)
	if err != nil {
		return nil, err
	}
	p := &QuotaPolicy{
		Numbers: n, Plan: b.Plan, Slots: config.CountsSlots(b.Limit.Algorithm), Queues: made.Mode == algorithms.ModeQueue,
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

// NewPolicies checks a limit and makes its quota policies.
func NewPolicies(b PolicyBuilder) (p Policies, err error) {
	if err := b.Limit.Check(); err != nil {
		return p, err
	}
	first, err := b.build(b.Limit.Sample())
	if err != nil {
		return p, err
	}
	if !b.Limit.Varies() {
		if of := first.Rule.Limit(); of.Hold > 0 {
			if err := algorithms.CheckHold(of); err != nil {
				return p, err
			}
		}
		return Policies{Likely: first, Fixed: first}, nil
	}
	return Policies{Likely: first, Varying: &dynamicPolicies{PolicyBuilder: b, seed: maphash.MakeSeed()}}, nil
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
	if p.Varying == nil {
		return false
	}
	other, err := p.Varying.build(p.Varying.Limit.OtherSample())
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
	PolicyBuilder
	seed  maphash.Seed
	slots [policySlots]atomic.Pointer[QuotaPolicy]
}

func (d *dynamicPolicies) Resolve(repl *caddy.Replacer) (*QuotaPolicy, error) {
	n, err := d.Limit.Numbers(repl)
	if err != nil {
		return nil, err
	}
	hash := maphash.Comparable(d.seed, n)
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
	p, err := d.build(n)
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
