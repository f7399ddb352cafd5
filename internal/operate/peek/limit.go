package peek

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// OverrideByText returns the override that a text asks for, and the rule to set it under: "exempt", or a limit, written as in the
// line of a plan, such as "500/1m" or "token_bucket 10/1s burst 50", or as a number of events in the zone's window.
func OverrideByText(z *zone.Zone, text string) (rule *store.Rule, s store.Override, err error) {
	if text == "exempt" || text == "unlimited" {
		return z.Rules()[0], store.Override{Kind: store.KindExempt}, nil
	}
	asked, err := config.ParseText(text)
	if err != nil {
		return nil, s, err
	}
	if rule, err = ruleOf(z, asked.Algorithm); err != nil {
		return nil, s, err
	}
	s.Kind = store.KindLimit
	s.Limit, err = overrideLimit(&asked.Limit, rule)
	return rule, s, err
}

// ruleOf returns the zone's rule with an algorithm, or its only rule if the name is empty.
func ruleOf(z *zone.Zone, algorithm string) (*store.Rule, error) {
	var names []string
	rules := z.Rules()
	for _, rule := range rules {
		names = append(names, rule.Algorithm().Name())
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
	if i := slices.Index(names, wanted.Name()); i >= 0 {
		return rules[i], nil
	}
	return nil, fmt.Errorf("zone %q has the algorithm %s, and the limit of a key must have it too: leave out %s",
		z.Name, strings.Join(names, ", "), algorithm)
}

// overrideLimit returns the limit of an override for the store. Fields that are missing are those of
// the rule.
func overrideLimit(l *config.Limit, rule *store.Rule) (made algorithms.Limit, err error) {
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
	return l.Resolve(l.Sample())
}

// DescribeRule formats the limit of a rule.
func DescribeRule(rule *store.Rule) string { return DescribeLimit(rule, rule.Limit(), true) }

// DescribeLimit formats the limit of an override in the form that [OverrideByText] takes. The override does not say whether
// it is for the algorithm of the rule (ofRule).
func DescribeLimit(rule *store.Rule, l algorithms.Limit, ofRule bool) string {
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
