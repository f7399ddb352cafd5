package limit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plans are different limits for classes of clients.
type Plans struct {
	// A text with placeholders whose value names the plan of a request, e.g.
	// `{http.vars.plan}`. Do not take it from anything that a client controls. Required.
	Of string `json:"of,omitempty"`

	// The plans by name. Options that a plan leaves out are those of the zone. Required.
	Plans map[string]*Plan `json:"plans,omitempty"`

	// The plan of requests whose plan is empty or unknown. Default: the zone's limit, if the
	// zone has one.
	Default string `json:"default,omitempty"`

	// The status with which requests are refused whose plan is empty or unknown, from 400 to 599,
	// in place of a default. Default: none.
	Reject int `json:"reject,omitempty"`
}

// Plan is the limit of a class of clients.
type Plan struct {
	Limit

	// Whether these clients have no limit in this zone. Default: false.
	Unlimited bool `json:"unlimited,omitempty"`
}

// Limits returns the limits of the plans that have one, with what they take from the zone's
// limit. The receiver may be nil.
func (p *Plans) Limits(base *Limit) map[string]Limit {
	if p == nil {
		return nil
	}
	all := make(map[string]Limit, len(p.Plans))
	for name, plan := range p.Plans {
		if plan == nil {
			plan = new(Plan)
		}
		if !plan.Unlimited {
			all[name] = plan.Over(base)
		}
	}
	return all
}

// Describe returns the plans as a text, with what they take from the zone's limit. Plans that
// mean the same have the same text.
func (p *Plans) Describe(base *Limit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plans of %s", p.Of)
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		var plan Plan
		if p.Plans[name] != nil {
			plan = *p.Plans[name]
		}
		if plan.Unlimited {
			fmt.Fprintf(&b, ", %s unlimited", name)
		} else {
			limit := plan.Over(base)
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
