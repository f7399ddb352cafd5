package admin

import (
	"fmt"
	"slices"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	keys "github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// showKey shows a key of a zone. It charges nothing and creates no state.
func showKey(c *adminCall) (any, error) {
	key, err := c.readKey()
	if err != nil {
		return nil, err
	}
	return c.lookUp(c.zone, key)
}

// lookUp returns the state of a key. In a zone with plans, the numbers are those of the default plan, or else of a plan that
// refuses the key, or of any, with the states under all plans.
func (c *adminCall) lookUp(z *running.Zone, key string) (*adminapi.Key, error) {
	if z.Plans == nil {
		return c.lookUpUnder(z, key, z.Own)
	}
	plans := z.Plans
	if z.DefaultPlan != nil && z.DefaultPlan == z.Own {
		plans = append([]*zone.Plan{z.Own}, plans...)
	}
	var all []adminapi.Key
	for _, plan := range plans {
		k := &adminapi.Key{Zone: z.Name, KeyText: peek.KeyText(z.Template, key, len(key)), Unlimited: true, Outcome: outcome.Names[outcome.Exempt]}
		if plan.Likely != nil {
			var err error
			if k, err = c.lookUpUnder(z, key, plan); err != nil {
				return nil, err
			}
		}
		k.Plan, k.Default = plan.Name, plan == z.DefaultPlan
		all = append(all, *k)
	}
	rank := func(k *adminapi.Key) int {
		return slices.Index([]bool{k.Unlimited, !k.Refused && !k.Default, !k.Default, true}, true)
	}
	shown := slices.MaxFunc(all, func(a, b adminapi.Key) int { return rank(&a) - rank(&b) })
	if shown.Unlimited {
		return nil, adminError(badRequest, "zone %q limits no requests, because all of its plans are unlimited", z.Name)
	}
	shown.Plans = all
	return &shown, nil
}

// lookUpUnder returns the state of a key under the limit of a plan, or of the zone.
func (c *adminCall) lookUpUnder(z *running.Zone, key string, plan *zone.Plan) (*adminapi.Key, error) {
	policy := plan.Likely
	recent, _ := z.Stats.Keys.Of(key)
	cost := max(z.Cost.Number, recent.RefusedCost)
	all := networksOf(z)
	network := all.Find(keys.ParseAddress(key))
	if network != nil && network.Override.Kind == store.KindLimit {
		if overruled := policy.Overruled(network); overruled != nil {
			policy = overruled
		} else {
			network = nil // its limit is for another algorithm
		}
	}
	l := peek.Look{Rule: policy.Rule, Rules: z.KeyRules, Of: store.Selector{Key: key}, Cost: cost}
	if err := peek.WithStore(c.request.Context(), z.Store, l.Ask); err != nil {
		return nil, storeError(z, err)
	}
	l.Under(all, network)
	o := l.Outcome(z.Zone)
	answer := l.State(z.Zone, policy, o)
	answer.Limit, answer.Rollout, answer.Lately = z.Description, z.Rollouts(), lately(z, key)
	answer.CostLast = cost > z.Cost.Number
	if plan.Varies() {
		answer.Assumed = peek.DescribeRule(policy.Rule)
	}
	if o == outcome.Rejected {
		answer.Status = z.KeylessStatus()
	}
	if len(z.Block) > 0 {
		answer.BlockStatus = zone.BlockStatus
	}
	if z.Plans != nil {
		answer.PlanFrom = z.PlanTemplate.Form()
	}
	why.Fill(answer)
	return answer, nil
}

// lately returns the recent counts of a key, or nil if there are none.
func lately(z *running.Zone, key string) *adminapi.Lately {
	recent, since := z.Stats.Keys.Of(key)
	counts := recent.Counts
	if counts[topk.Requests] == 0 {
		return nil
	}
	return &adminapi.Lately{Since: since, Plan: recent.Plan, Requests: counts[topk.Requests], Refused: counts[topk.Refused], DryRun: z.MayTry(key, false)}
}

// findKey shows a key in all zones. If the keys of a zone have several parts, and the call has just
// one, it shows the recent keys with this part.
func findKey(c *adminCall) (any, error) {
	named, err := c.readKeyQuery()
	if err != nil {
		return nil, err
	}
	if named.isEmpty() {
		return nil, adminError(badRequest, "the key is missing")
	}
	zones := running.Zones()
	found := make([][]adminapi.Key, len(zones))
	var group sync.WaitGroup
	for i, z := range zones {
		group.Go(func() { found[i] = c.find(z, &named) })
	}
	group.Wait()
	return slices.Concat(found...), nil
}

// find returns what a call without the name of a zone finds in this one.
func (c *adminCall) find(z *running.Zone, named *keyQuery) (found []adminapi.Key) {
	all, err := named.keysInUnnamed(z)
	for _, key := range all {
		state, failed := c.lookUp(z, key)
		if failed != nil {
			err = failed
			break
		}
		found = append(found, *state)
	}
	if err != nil {
		found = append(found, adminapi.Key{Zone: z.Name, Error: err.Error()})
	}
	return found
}

// keysInUnnamed returns the keys in a zone that the call does not name. A zone without a key has one
// state for all requests.
func (k *keyQuery) keysInUnnamed(z *running.Zone) (keys []string, err error) {
	template := z.Zone.Template
	var key string
	switch n := template.NumPlaceholders(); {
	case n == 0:
		key, err = template.FromValues(nil)
	case n == 1 && k.text != nil && len(template.Parts) > 1:
		if key, err = template.FromText(k.text[0]); err != nil {
			key, err = template.FromValues(k.text)
		}
	default:
		if key, err = k.keyOf(template); err != nil && k.text != nil && n > 1 {
			if keys = recentKeysWith(z, k.text[0]); keys != nil {
				return keys, nil
			}
			err = fmt.Errorf("%w, since no recent key has this part", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return []string{key}, nil
}

const (
	// maxFound bounds the keys that are looked up because of one of their parts.
	maxFound = 20

	// maxSearched bounds the recent keys that are searched for a part.
	maxSearched = 1000
)

// recentKeysWith returns recent keys that have this text as a part, those that were refused most first.
func recentKeysWith(z *running.Zone, text string) (keys []string) {
	for _, kind := range []topk.Kind{topk.Refused, topk.Requests} {
		top, _ := z.Stats.Keys.Top(maxSearched, kind)
		for _, e := range top {
			if len(keys) < maxFound && e.Length == len(e.Key) && !slices.Contains(keys, e.Key) && z.Zone.Template.HasPart(e.Key, text) {
				keys = append(keys, e.Key)
			}
		}
	}
	return keys
}
