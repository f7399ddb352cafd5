package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// limitText is the limit of an override, written as in the line of a plan, such as "500/1m", "token_bucket 10/1s burst 50" or
// "unlimited"; or as a number of events in the zone's window.
type limitText string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *limitText) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(l)) != nil {
		*l = limitText(b)
	}
	return nil
}

// OverrideByText returns the override that a text asks for: a limit such as 500/1m, exempt, or plan and a name; and the
// rule to set it under.
func OverrideByText(z *zone.Zone, text string) (*store.Rule, store.Override, error) {
	var asked overrideRequest
	if plan, ok := strings.CutPrefix(text, "plan "); ok {
		asked.Plan = plan
	} else if asked.Exempt = text == "exempt"; !asked.Exempt {
		asked.Limit = (*limitText)(&text)
	}
	return (&runningZone{Zone: z}).overrideOf(&asked)
}

// overrideOf returns the override that a request asks for, and the rule to set it under.
func (z *runningZone) overrideOf(request *overrideRequest) (rule *store.Rule, s store.Override, err error) {
	given := 0
	for _, is := range []bool{request.Limit != nil, request.Plan != "", request.Exempt} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, s, fmt.Errorf("exactly one of limit, plan and exempt is needed, got %d", given)
	case request.Plan != "":
		return z.overrideOfPlan(request.Plan)
	case request.Exempt:
		return z.Rules()[0], store.Override{Kind: store.KindExempt}, nil
	}
	asked, err := config.ParseText(string(*request.Limit))
	switch {
	case err != nil:
		return nil, s, err
	case asked.Unlimited:
		return z.Rules()[0], store.Override{Kind: store.KindExempt}, nil
	}
	if rule, err = z.ruleOf(asked.Algorithm); err != nil {
		return nil, s, err
	}
	s.Kind = store.KindLimit
	s.Limit, err = z.overrideLimit(&asked.Limit, rule)
	return rule, s, err
}

// overrideOfPlan returns the override for a key that gets the limit of a plan.
func (z *runningZone) overrideOfPlan(name string) (*store.Rule, store.Override, error) {
	p := z.Plans[name]
	switch {
	case z.Plan == nil:
		return nil, store.Override{}, fmt.Errorf("zone %q has no plans: write a limit, such as 500/1m", z.Name)
	case p == nil:
		_, err := z.policiesOf(name)
		return nil, store.Override{}, err
	case p.Unlimited:
		return z.Rules()[0], store.Override{Kind: store.KindExempt, Note: "plan " + name}, nil
	case p.Policies.Fixed == nil:
		return nil, store.Override{}, fmt.Errorf("the limit of plan %q depends on the request: write a limit, such as 500/1m", name)
	}
	rule := p.Policies.Fixed.Rule
	return rule, store.Override{Kind: store.KindLimit, Limit: rule.Limit(), Note: "plan " + name}, nil
}

// ruleOf returns the zone's rule with an algorithm, or its only rule if the name is empty.
func (z *runningZone) ruleOf(algorithm string) (*store.Rule, error) {
	rules := z.Rules()
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = rule.Algorithm().Name()
	}
	if algorithm == "" {
		if len(rules) > 1 {
			return nil, fmt.Errorf("the plans of zone %q have the algorithms %s, and a limit is for one of them: name it, as in %q",
				z.Name, strings.Join(names, ", "), names[0]+" 500/1m")
		}
		return rules[0], nil
	}
	wanted, err := algorithms.Get(algorithm)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if rule.Algorithm().Name() == wanted.Name() {
			return rule, nil
		}
	}
	return nil, fmt.Errorf("zone %q has the algorithm %s, and the limit of a key must have it too: leave out %s",
		z.Name, strings.Join(names, ", "), algorithm)
}

// overrideLimit returns the limit of an override for the store. Fields that are missing are those of
// the rule.
func (z *runningZone) overrideLimit(l *config.Limit, rule *store.Rule) (made algorithms.Limit, err error) {
	if l.MaxEvents == nil {
		return made, errors.New("limit: events are missing: write 500/1m, or 500 for the zone's window")
	}
	switch {
	case l.Varies():
		return made, errors.New("limit: the limit of a single key cannot have placeholders: write one such as 500/1m")
	case l.Wait() != 0 && rule.Limit().Mode != algorithms.ModeQueue:
		return made, errors.New("limit: max_wait is always that of the zone, except in a queue: leave it out")
	case l.Timezone != "":
		return made, errors.New("limit: timezone is always that of the zone: leave it out")
	}
	return l.Resolve(config.Numbers{Events: l.MaxEvents.Number, Burst: l.Burst.Number, Window: l.Window})
}

// DescribeRule formats the limit of a rule.
func DescribeRule(rule *store.Rule) string { return describeLimit(rule, rule.Limit(), true) }

// describeLimit formats the limit of an override in the form that [limitText] has. The
// override does not say whether it is for the algorithm of the rule (ofRule).
func describeLimit(rule *store.Rule, l algorithms.Limit, ofRule bool) string {
	text, window := strconv.FormatInt(l.Events, 10), config.Window{Duration: caddy.Duration(l.Window), Calendar: l.Calendar}
	if ofRule {
		if base := rule.Limit(); window == (config.Window{}) {
			window = config.Window{Duration: caddy.Duration(base.Window), Calendar: base.Calendar}
		}
	}
	if window != (config.Window{}) {
		text += "/" + window.Format()
	}
	if ofRule {
		text = rule.Algorithm().Name() + " " + text
	}
	for _, option := range []struct{ name, value string }{
		{"burst", strconv.FormatInt(l.Burst, 10)},
		{"refill", l.Refill},
		{"mode", l.Mode},
		{"align", l.Align},
		{"lease", duration.Format(l.Lease)},
		{"max_wait", duration.Format(l.MaxWait)},
	} {
		if option.value != "" && option.value != "0" && option.value != duration.Format(0) {
			text += " " + option.name + " " + option.value
		}
	}
	return text
}
