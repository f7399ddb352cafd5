package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func (z *Zone) checkMissingKey() error {
	switch z.MissingKey {
	case "":
		return nil
	case zone.MissingShare, zone.MissingSkip, zone.MissingReject:
	default:
		return fmt.Errorf("missing_key must be share, skip or reject, got %q", z.MissingKey)
	}
	if !z.live.Template.Varies() {
		return fmt.Errorf("missing_key %s needs a key with a placeholder, got key %q", z.MissingKey, z.Key)
	}
	return nil
}

// hasPart reports whether f is true for a part of the key or the plan.
func (z *Zone) hasPart(f func(*key.Part) bool) bool {
	for _, k := range []*key.Template{z.live.Template, z.live.PlanTemplate} {
		for i := 0; k != nil && i < len(k.Parts); i++ {
			if f(&k.Parts[i]) {
				return true
			}
		}
	}
	return false
}

func (z *Zone) checkRawValues() error {
	if z.RawValues && !z.hasPart(func(p *key.Part) bool { return key.NormalizerOf(p.Placeholder) != nil }) {
		return fmt.Errorf("raw_values needs a key or plan with a placeholder of a host or a path, got key %q", z.Key)
	}
	return nil
}

// The values of the option repeated_values.
const (
	repeatedReject = "reject"
	repeatedJoin   = "join"
)

func (z *Zone) checkRepeatedValues() error {
	if z.RepeatedValues == "" {
		return nil
	}
	if err := oneOf("repeated_values", &z.RepeatedValues, repeatedReject, repeatedJoin); err != nil {
		return err
	}
	if !z.hasPart(func(p *key.Part) bool { return p.Repeatable != nil }) {
		return fmt.Errorf("repeated_values %s needs a key or plan with a placeholder of a header, a query parameter or a cookie, got key %q",
			z.RepeatedValues, z.Key)
	}
	return nil
}

func (z *Zone) compileKey(log *zap.Logger) (err error) {
	z.live.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix)
	if err != nil {
		return err
	}
	z.live.Template.JoinsRepeated = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.live.Template.Normalize()
	}
	if (z.IPv4Prefix != 0 || z.IPv6Prefix != 0) && !z.live.Template.Varies() {
		log.Warn("ipv4_prefix and ipv6_prefix have no effect: the key has no placeholder", zap.String("zone", z.live.Name))
	}
	for _, empty := range z.live.Template.OftenEmpty {
		log.Warn("the key may have the same value for all clients: "+empty.Why,
			zap.String("zone", z.live.Name), zap.String("placeholder", "{"+empty.Name+"}"))
	}
	return nil
}

func (z *Zone) compilePlans(m zone.PolicyBuilder) (err error) {
	p := z.Plan
	if p.Of == "" {
		return errors.New("plan: of is missing: write the text that names the plan of a request, such as {http.vars.plan}")
	}
	if z.live.PlanTemplate, err = key.NewText("plan", p.Of); err != nil {
		return err
	}
	z.live.PlanTemplate.JoinsRepeated = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.live.PlanTemplate.Normalize()
	}
	z.live.Plans, z.live.PlanByName = make(map[string]*zone.Plan, len(p.Plans)), make(map[string]*zone.Plan, len(p.Plans))
	if z.MaxEvents != nil {
		z.live.DefaultPlan = &zone.Plan{Policies: z.live.OwnPolicies}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		plan := p.Plans[name]
		if plan == nil {
			plan = new(limit.Plan)
		}
		made := &zone.Plan{Name: name, Unlimited: plan.Unlimited}
		switch {
		case name == "":
			return errors.New("plan: a plan needs a name")
		case plan.Unlimited && plan.Limit != (limit.Limit{}):
			return fmt.Errorf("plan %q: unlimited excludes all other options", name)
		case !plan.Unlimited:
			m.Plan, m.Limit = name, plan.Over(&z.Limit)
			if made.Policies, err = zone.NewPolicies(m); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		as := z.live.PlanTemplate.NormalizeName(name)
		if z.live.PlanByName[as] != nil {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one, or set raw_values", name, as, p.Of)
		}
		z.live.Plans[name], z.live.PlanByName[as] = made, made
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
		return checkStatus("plan: reject", p.Reject)
	case z.live.DefaultPlan == nil && p.Default != "":
		names := slices.Sorted(maps.Keys(p.Plans))
		return fmt.Errorf("plan: default must be one of %s, or reject, got %q%s", strings.Join(names, ", "), p.Default, suggest.Hint(p.Default, names))
	case z.live.DefaultPlan == nil:
		return fmt.Errorf("plan: the default is missing: write default <plan>, or default reject %d", http.StatusForbidden)
	}
	return nil
}

// checkCharge checks the options of charges that depend on the response.
func (z *Zone) checkCharge() error {
	if m := z.ChargeOnResponse; m != nil {
		if len(m.StatusCode) == 0 && len(m.Headers) == 0 {
			return errors.New("charge on_response needs a status or a header, to say which responses count")
		}
		for _, status := range m.StatusCode {
			if status < 1 || status > 5 && status < 200 && status != http.StatusSwitchingProtocols || status > 599 {
				return fmt.Errorf("charge on_response: status must be from 200 to 599, 101, or from 1 to 5 for 1xx to 5xx, got %d", status)
			}
		}
		if err := z.checkReturnable("charge on_response"); err != nil {
			return err
		}
	}
	if n := z.CostBrokenOff; n != nil && z.CostHeader == "" {
		return errors.New("cost_broken_off needs a cost_header")
	} else if n != nil && !limit.ValidCost(*n) {
		return fmt.Errorf("cost_broken_off must be from 0 to %d, got %d", algorithms.MaxEvents, *n)
	}
	if z.CostRequest != nil {
		if err := z.CostRequest.Compile(); err != nil {
			return err
		}
	}
	if z.CostResponse != nil {
		if err := z.CostResponse.Compile(); err != nil {
			return err
		}
		if z.CostHeader != "" {
			return errors.New("cost_header and cost_response exclude each other: a request has one cost")
		}
		return z.checkLateCost("cost_response")
	}
	if z.CostHeader == "" {
		return nil
	}
	if strings.IndexFunc(z.CostHeader, placeholder.NotInFieldName) >= 0 {
		return fmt.Errorf("cost_header must be the name of a header, got %q", z.CostHeader)
	}
	z.CostHeader = textproto.CanonicalMIMEHeaderKey(z.CostHeader)
	return z.checkLateCost("cost_header")
}

// checkLateCost checks a zone whose costs are known only after the response.
func (z *Zone) checkLateCost(option string) error {
	if z.live.FixedCost == 0 && (z.Cost.From == "" || z.Cost.Fallback) {
		return fmt.Errorf("%s needs a cost of at least 1: a request with cost 0 is never refused, whatever earlier ones have cost", option)
	}
	return z.checkReturnable(option)
}

// checkReturnable returns an error for algorithms whose charges come back by themselves.
func (z *Zone) checkReturnable(option string) error {
	for _, l := range z.live.Limits() {
		if limit.Lends(l.Algorithm) {
			return fmt.Errorf("%s has no meaning for %s: slots always come back", option, l.Algorithm)
		}
	}
	return nil
}

// Reserve reserves slots for important requests, like Stripe's fleet usage load shedder: P. Tarjan,
// Scaling your API with rate limiters (2017).
type Reserve struct {
	// The share of the slots that only these requests get, in percent above 0 and below 100. It is
	// rounded up to whole slots. Required.
	Percent float64 `json:"percent,omitempty"`

	// The important requests: the requests that any of these matcher sets matches. Required.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`
}

// check checks the reserve of a zone. It may be nil.
func (s *Reserve) check(z *Zone) error {
	switch {
	case s == nil:
		return nil
	case !limit.Lends(z.Algorithm):
		return errors.New("reserve is for algorithm concurrency")
	case math.IsNaN(s.Percent) || s.Percent <= 0 || s.Percent >= 100:
		return fmt.Errorf("reserve must be above 0 and below 100 percent, got %v", s.Percent)
	case len(s.MatcherSetsRaw) == 0:
		return errors.New("reserve needs a match, to say which requests it is for")
	}
	if err := s.checkLeft(&z.Limit); err != nil {
		return err
	}
	limits := z.Plan.Limits(&z.Limit)
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		if err := s.checkLeft(&l); err != nil {
			return fmt.Errorf("plan %q: %w", name, err)
		}
	}
	return nil
}

// checkLeft returns an error if all slots of a limit are reserved.
func (s *Reserve) checkLeft(l *limit.Limit) error {
	if n := l.MaxEvents; limit.Lends(l.Algorithm) && n != nil && n.From == "" && n.Number > 0 && zone.UnreservedSlots(n.Number, s.Percent) == 0 {
		return fmt.Errorf("reserve: %v %% of %d slots, rounded up, are all of them, so no other request can pass: reserve less, or block the others",
			s.Percent, n.Number)
	}
	return nil
}

// percent is the reserved share, in percent. The reserve may be nil.
func (s *Reserve) percent() float64 {
	if s == nil {
		return 0
	}
	return s.Percent
}

func (z *Zone) compileEnforce(log *zap.Logger) error {
	if z.Enforce == nil {
		return nil
	}
	switch share := *z.Enforce; {
	case z.DryRun:
		return errors.New("dry_run and enforce exclude each other: enforce 0 is a dry run")
	case math.IsNaN(share) || share < 0 || share > 100:
		return fmt.Errorf("enforce must be from 0 to 100 percent, got %v", share)
	case share > 0 && share < 100 && !z.live.Template.Varies():
		log.Warn("enforce chooses among keys, but this zone has only one", zap.String("zone", z.live.Name))
	}
	z.live.EnforceSeed = xxhash.Sum64String(z.live.Name)
	return nil
}

// Ban bans keys that continue to send requests although they are refused. A banned key is refused
// without being counted.
type Ban struct {
	// How long the first ban lasts, from 1s to 3660d. Required.
	Duration caddy.Duration `json:"duration,omitempty"`

	// The number of refusals by the zone's limit that lead to a ban, at least 1. Required.
	After int64 `json:"after,omitempty"`

	// The time in which these refusals must happen, counted from the first one, from 1s to 3660d.
	// Required.
	Window caddy.Duration `json:"window,omitempty"`

	// The longest ban, at least duration and at most 3660d. Each ban is twice as long as the one before, up to
	// this, unless this much time has passed since that one ended. Default: duration, so all bans are equally long.
	UpTo caddy.Duration `json:"up_to,omitempty"`
}

func (b *Ban) rule() *store.Ban {
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
}

// checkLend checks that nothing else in the zone needs the store for each request.
func (z *Zone) checkLend() error {
	if z.Lend == 0 {
		return nil
	}
	for _, o := range []struct {
		name string
		set  bool
		why  string
	}{
		{"overrides", z.Overrides, "an override holds from the next request on, which must ask the store"},
		{"ban", z.Ban != nil, "the store must see each refusal"},
		{"dry_run", z.DryRun, "a dry run asks the store for each request"},
		{"enforce", z.Enforce != nil, "a dry run asks the store for each request"},
		{"reserve", z.Reserve != nil, "slots that are kept may go to any request"},
	} {
		if o.set {
			return fmt.Errorf("lend and %s exclude each other: %s", o.name, o.why)
		}
	}
	return nil
}

// compileKeyRules compiles what overrules the limit for single keys.
func (z *Zone) compileKeyRules() error {
	if !z.Overrides && z.Ban == nil {
		return nil
	}
	z.live.KeyRules = &store.KeyRules{Overrides: z.Overrides}
	if z.Ban == nil {
		return nil
	}
	z.live.KeyRules.Ban = z.Ban.rule()
	if err := z.live.KeyRules.Ban.Validate(); err != nil {
		return err
	}
	for _, l := range z.live.Limits() {
		if l.MaxWait > 0 && l.Mode != algorithms.ModeQueue {
			return errors.New("ban and max_wait exclude each other, except in a queue: each retry of a waiting request would count as a refusal")
		}
	}
	return nil
}

// describe describes the ban for zones of the same name to agree on.
func (b *Ban) describe() string {
	text := " ban " + duration.Format(time.Duration(b.Duration)) + " after " + strconv.FormatInt(b.After, 10) + " in " + duration.Format(time.Duration(b.Window))
	if b.UpTo != 0 {
		text += " up_to " + duration.Format(time.Duration(b.UpTo))
	}
	return text
}

// checkQueues returns an error for zones that would lose turns in a Cluster. Queues with different
// keys are on different nodes there, and the nodes charge one after the other. If the last one
// refuses, the turn in the first one cannot be given back when another request is behind it.
func (h *Handler) checkQueues(backend store.Backend) error {
	if p, ok := backend.(store.Partitioned); !ok || !p.Partitioned() {
		return nil
	}
	var first *zone.Zone
	for _, z := range h.zones {
		if z.DryRun || !slices.ContainsFunc(z.Limits(), func(l *limit.Limit) bool { return l.Mode == algorithms.ModeQueue }) {
			continue
		}
		switch {
		case first == nil:
			first = z
		case first.Key != z.Key || first.Template.Prefixes != z.Template.Prefixes:
			return fmt.Errorf("zones %q and %q: two queues with different keys cannot be combined in mode cluster, "+
				"because a turn in one is lost if the other refuses: give both the same key, or put them in two rate_limit handlers",
				first.Name, z.Name)
		}
	}
	return nil
}
