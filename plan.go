package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
)

// Plans are limits by class of client.
type Plans struct {
	// What names the plan of a request: text with placeholders, such as `{http.vars.plan}`.
	// Required.
	Of string `json:"of,omitempty"`

	// The plans by name. What a plan does not say of its limit is as the zone says.
	Plans map[string]*Plan `json:"plans,omitempty"`

	// The plan of requests that name none, or one that is not there. Default: the zone's own
	// limit, if it has one.
	Default string `json:"default,omitempty"`

	// In place of a default: the status with which these requests are refused.
	Reject int `json:"reject,omitempty"`
}

// Plan is the limit of a class of clients.
type Plan struct {
	Limit

	// Whether the zone leaves these clients alone. Default: false.
	Unlimited bool `json:"unlimited,omitempty"`
}

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
	if z.planOf, err = key.NewText("plan", p.Of); err != nil {
		return err
	}
	z.planOf.Joins = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.planOf.Normalize()
	}
	z.plans, z.planFor = make(map[string]*plan, len(p.Plans)), make(map[string]*plan, len(p.Plans))
	if z.MaxEvents != nil {
		z.noPlan = &plan{grants: z.own}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		of := p.Plans[name]
		if of == nil {
			of = new(Plan)
		}
		made := &plan{unlimited: of.Unlimited}
		switch {
		case name == "":
			return errors.New("plan: a plan needs a name")
		case of.Unlimited && of.Limit != (Limit{}):
			return fmt.Errorf("plan %q: unlimited excludes all other options", name)
		case !of.Unlimited:
			m.plan, m.limit = name, of.over(&z.Limit)
			if made.grants, err = newGrants(m); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		as := z.planOf.Name(name)
		if z.planFor[as] != nil {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one, or set raw_values", name, as, p.Of)
		}
		z.plans[name], z.planFor[as] = made, made
	}
	if p.Default != "" {
		z.noPlan = z.plans[p.Default]
	}
	switch {
	case len(p.Plans) == 0:
		return errors.New("plan: there are no plans")
	case p.Default != "" && p.Reject != 0:
		return fmt.Errorf("plan: default %q and reject %d exclude each other", p.Default, p.Reject)
	case p.Reject != 0:
		z.noPlan = nil
		return refusing("plan: reject", p.Reject)
	case z.noPlan == nil && p.Default != "":
		return fmt.Errorf("plan: default names no plan, got %q", p.Default)
	case z.noPlan == nil:
		return fmt.Errorf("plan: what holds for the others is missing: write default <plan>, or default reject %d", http.StatusForbidden)
	}
	return nil
}

// limits are the zone's own limit and those of its plans, as they are written.
func (z *Zone) limits() []*Limit {
	limits := []*Limit{&z.Limit}
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
func (z *Zone) choosePlan(repl *caddy.Replacer, r *http.Request) (*plan, error) {
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

// limits are those of the plans that have one, with what they take over from the zone.
// There need be no plans.
func (p *Plans) limits(base *Limit) map[string]Limit {
	if p == nil {
		return nil
	}
	all := make(map[string]Limit, len(p.Plans))
	for name, of := range p.Plans {
		if of == nil {
			of = new(Plan)
		}
		if !of.Unlimited {
			all[name] = of.over(base)
		}
	}
	return all
}

// describe says what the plans come to, with what they take over from the zone.
func (p *Plans) describe(base *Limit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plans of %s", p.Of)
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		var of Plan
		if p.Plans[name] != nil {
			of = *p.Plans[name]
		}
		if of.Unlimited {
			fmt.Fprintf(&b, ", %s unlimited", name)
		} else {
			limit := of.over(base)
			fmt.Fprintf(&b, ", %s %s", name, limit.describe())
		}
	}
	switch {
	case p.Default != "":
		b.WriteString(", default " + p.Default)
	case p.Reject != 0:
		fmt.Fprintf(&b, ", default reject %d", p.Reject)
	}
	return b.String()
}
