package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// plan is a plan made ready.
type plan struct {
	unlimited bool
	grants    grants
}

func (z *Zone) provisionPlans(m granting) (err error) {
	p := z.Plan
	if p.Of == "" {
		return errors.New("plan: of is missing: say what names the plan of a request, such as {http.vars.plan}")
	}
	if z.live.planOf, err = key.NewText("plan", p.Of); err != nil {
		return err
	}
	z.live.planOf.Joins = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.live.planOf.Normalize()
	}
	z.live.plans, z.live.planFor = make(map[string]*plan, len(p.Plans)), make(map[string]*plan, len(p.Plans))
	if z.MaxEvents != nil {
		z.live.noPlan = &plan{grants: z.live.own}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		of := p.Plans[name]
		if of == nil {
			of = new(limit.Plan)
		}
		made := &plan{unlimited: of.Unlimited}
		switch {
		case name == "":
			return errors.New("plan: a plan needs a name")
		case of.Unlimited && of.Limit != (limit.Limit{}):
			return fmt.Errorf("plan %q: unlimited excludes all other options", name)
		case !of.Unlimited:
			m.plan, m.limit = name, of.Over(&z.Limit)
			if made.grants, err = newGrants(m); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		as := z.live.planOf.Name(name)
		if z.live.planFor[as] != nil {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one, or set raw_values", name, as, p.Of)
		}
		z.live.plans[name], z.live.planFor[as] = made, made
	}
	if p.Default != "" {
		z.live.noPlan = z.live.plans[p.Default]
	}
	switch {
	case len(p.Plans) == 0:
		return errors.New("plan: there are no plans")
	case p.Default != "" && p.Reject != 0:
		return fmt.Errorf("plan: default %q and reject %d exclude each other", p.Default, p.Reject)
	case p.Reject != 0:
		z.live.noPlan = nil
		return refusing("plan: reject", p.Reject)
	case z.live.noPlan == nil && p.Default != "":
		return fmt.Errorf("plan: default names no plan, got %q", p.Default)
	case z.live.noPlan == nil:
		return fmt.Errorf("plan: what holds for the others is missing: write default <plan>, or default reject %d", http.StatusForbidden)
	}
	return nil
}

// limits are the zone's own limit and those of its plans, as they are written.
func (z *liveZone) limits() []*limit.Limit {
	limits := []*limit.Limit{&z.Limit}
	if z.Plan != nil {
		for _, p := range z.Plan.Plans {
			if p != nil {
				limits = append(limits, &p.Limit)
			}
		}
	}
	return limits
}

var errNoPlan = errors.New("the request has no plan")

// choosePlan finds the plan of a request.
func (z *liveZone) choosePlan(repl *caddy.Replacer, r *http.Request) (*plan, error) {
	name, err := z.planOf.Expand(repl, r)
	if err != nil {
		return nil, err
	}
	if len(z.planOf.Parts) > 1 {
		name = z.planOf.Name(name)
	}
	if chosen, ok := z.planFor[name]; ok {
		return chosen, nil
	}
	if z.noPlan == nil {
		return nil, errNoPlan
	}
	return z.noPlan, nil
}
