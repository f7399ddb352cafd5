package limit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// Limits are those of the plans that have one, with what they take over from the zone.
// There need be no plans.
func (p *Plans) Limits(base *Limit) map[string]Limit {
	if p == nil {
		return nil
	}
	all := make(map[string]Limit, len(p.Plans))
	for name, of := range p.Plans {
		if of == nil {
			of = new(Plan)
		}
		if !of.Unlimited {
			all[name] = of.Over(base)
		}
	}
	return all
}

// Describe says what the plans come to, with what they take over from the zone.
func (p *Plans) Describe(base *Limit) string {
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
			limit := of.Over(base)
			fmt.Fprintf(&b, ", %s %s", name, limit.Describe())
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
