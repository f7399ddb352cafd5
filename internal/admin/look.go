package admin

import (
	"maps"
	"slices"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// showKey charges nothing, and makes no key.
func showKey(c *adminCall) error {
	key, err := c.key("plan", "cost")
	if err != nil {
		return err
	}
	answer, err := c.zone.look(c, key)
	if err != nil {
		return err
	}
	return c.answer(answer)
}

// findKey looks at a key in all zones.
func findKey(c *adminCall) error {
	if err := c.known(append([]string{"cost"}, keyParameters...)...); err != nil {
		return err
	}
	asked, err := c.askedKey()
	if err != nil {
		return err
	}
	if asked.none() {
		return adminError(badRequest, "say which key: ?key=..., percent-encoded, or ?key_base64=..., or ?part=... for each placeholder")
	}
	if _, err := c.cost(0); err != nil {
		return err
	}
	zones := runningZones()
	answers := make([]any, len(zones))
	var group sync.WaitGroup
	for i, z := range zones {
		group.Go(func() {
			key, err := asked.anywhere(z)
			if err == nil {
				answers[i], err = z.look(c, key)
			}
			if err != nil {
				answers[i] = adminapi.KeyError{Zone: z.Name, Error: err.Error()}
			}
		})
	}
	group.Wait()
	return c.answer(answers)
}

// cost is the cost that the query asks about.
func (c *adminCall) cost(usual int64) (int64, error) {
	return c.number("cost", usual, 0, algorithms.MaxEvents)
}

// look says where a key stands.
func (z *runningZone) look(c *adminCall, key string) (*adminapi.Key, error) {
	of, err := z.policiesOf(c.query.Get("plan"))
	if err != nil {
		return nil, err
	}
	granted := of.Likely
	cost, err := c.cost(z.FixedCost)
	if err != nil {
		return nil, err
	}
	p := peek{rule: granted.Rule, key: key, cost: cost, rules: z.KeyRules}
	if err := using(z.kept, c, p.ask); err != nil {
		return nil, z.unanswered(err)
	}
	answer := &adminapi.Key{
		Zone: z.Name, KeyText: adminapi.NewKeyText(key, len(key)), Plan: granted.Plan, Limit: z.Description,
		Cost: cost, CostFrom: z.Cost.From, QuotaStatus: *adminapi.NewQuotaStatus(p.decision),
		Ban: p.ban(), Override: p.override(), Overrides: z.Overrides, Lately: z.lately(key),
	}
	if of.Varying != nil {
		answer.Assumed = describeOwn(granted.Rule, granted.Rule.Limit(), true)
	}
	if granted.Others != nil {
		others := peek{rule: granted.Others.Rule, key: key, cost: cost, rules: z.KeyRules}
		if err := using(z.kept, c, others.ask); err != nil {
			return nil, z.unanswered(err)
		}
		answer.Others = adminapi.NewQuotaStatus(others.decision)
	}
	if len(z.Block) > 0 {
		answer.BlockStatus = z.BlockStatus
	}
	o := p.outcome(z.Zone)
	if o == outcome.Rejected {
		answer.Status = z.MissingKeyStatus
	}
	answer.Outcome, answer.Refused = outcome.Names[o], o.Declined()
	return answer, nil
}

// lately is how often a key came; nil if that is not known.
func (z *runningZone) lately(key string) *adminapi.Lately {
	counts, since := z.Stats.Keys.Counts(key)
	if counts[topk.Requests].AtLeast == 0 {
		return nil
	}
	return &adminapi.Lately{Since: since, Requests: counts[topk.Requests].AtLeast, Refused: counts[topk.Refused].AtLeast}
}

// policiesOf are the limits of a plan, or of requests that name none. The likely one is the one
// that is written, or else one that goes with it; there is one.
func (z *runningZone) policiesOf(name string) (*zone.Policies, error) {
	of := &z.OwnPolicies
	if chosen, ok := z.Plans[name]; ok {
		of = &chosen.Policies
	} else if name != "" {
		return nil, adminError(badRequest, "zone %q has no plan %q; there are %q", z.Name, name, slices.Sorted(maps.Keys(z.Plans)))
	} else if z.DefaultPlan != nil {
		of = &z.DefaultPlan.Policies
	}
	if of.Likely == nil {
		return nil, adminError(badRequest, "zone %q limits no requests of this plan; say which plan is meant: plan=..., one of %q",
			z.Name, slices.Sorted(maps.Keys(z.Plans)))
	}
	return of, nil
}
