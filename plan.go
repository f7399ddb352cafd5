package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

func (z *Zone) provisionPlans(m zone.Builder) (err error) {
	p := z.Plan
	if p.Of == "" {
		return errors.New("plan: of is missing: say what names the plan of a request, such as {http.vars.plan}")
	}
	if z.live.PlanOf, err = key.NewText("plan", p.Of); err != nil {
		return err
	}
	z.live.PlanOf.Joins = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.live.PlanOf.Normalize()
	}
	z.live.Plans, z.live.PlanFor = make(map[string]*zone.Plan, len(p.Plans)), make(map[string]*zone.Plan, len(p.Plans))
	if z.MaxEvents != nil {
		z.live.DefaultPlan = &zone.Plan{Policies: z.live.Own}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		of := p.Plans[name]
		if of == nil {
			of = new(limit.Plan)
		}
		made := &zone.Plan{Unlimited: of.Unlimited}
		switch {
		case name == "":
			return errors.New("plan: a plan needs a name")
		case of.Unlimited && of.Limit != (limit.Limit{}):
			return fmt.Errorf("plan %q: unlimited excludes all other options", name)
		case !of.Unlimited:
			m.Plan, m.Limit = name, of.Over(&z.Limit)
			if made.Policies, err = zone.NewPolicies(m); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		as := z.live.PlanOf.Name(name)
		if z.live.PlanFor[as] != nil {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one, or set raw_values", name, as, p.Of)
		}
		z.live.Plans[name], z.live.PlanFor[as] = made, made
	}
	if p.Default != "" {
		z.live.DefaultPlan = z.live.Plans[p.Default]
	}
	switch {
	case len(p.Plans) == 0:
		return errors.New("plan: there are no plans")
	case p.Default != "" && p.Reject != 0:
		return fmt.Errorf("plan: default %q and reject %d exclude each other", p.Default, p.Reject)
	case p.Reject != 0:
		z.live.DefaultPlan = nil
		return refusing("plan: reject", p.Reject)
	case z.live.DefaultPlan == nil && p.Default != "":
		return fmt.Errorf("plan: default names no plan, got %q", p.Default)
	case z.live.DefaultPlan == nil:
		return fmt.Errorf("plan: what holds for the others is missing: write default <plan>, or default reject %d", http.StatusForbidden)
	}
	return nil
}
