package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// checkSpec checks all of a zone but its limits, which [zone.New] checks.
func (z *Zone) checkSpec(s *zone.Spec, log *zap.Logger) error {
	if z.OnStoreError != "" {
		if err := checkOnStoreError(&z.OnStoreError); err != nil {
			return err
		}
	}
	if (z.IPv4Prefix != 0 || z.IPv6Prefix != 0) && !s.Template.Varies() {
		log.Warn("ipv4_prefix and ipv6_prefix have no effect: the key has no placeholder", zap.String("zone", s.Name))
	}
	for _, empty := range s.Template.OftenEmpty {
		log.Warn("the key may have the same value for all clients: "+empty.Why,
			zap.String("zone", s.Name), zap.String("placeholder", "{"+empty.Name+"}"))
	}
	for _, check := range []func(*zone.Spec) error{
		checkPlans, checkCost, checkStatuses, z.checkMissingKey, z.checkCharge, checkKeyRules,
	} {
		if err := check(s); err != nil {
			return err
		}
	}
	if err := checkEnforce(s, log); err != nil {
		return err
	}
	return z.checkChallenge(s)
}

// checkPlans checks plans, but for their limits.
func checkPlans(s *zone.Spec) error {
	p := s.Plan
	if p == nil {
		return nil
	}
	if p.Of == "" {
		return errors.New("plan: of is missing: write the text that names the plan of a request, such as {http.vars.plan}")
	}
	names, normal := slices.Sorted(maps.Keys(p.Plans)), make(map[string]bool)
	for _, name := range names {
		if name == "" {
			return errors.New("plan: a plan needs a name")
		}
		if plan := p.Plans[name]; plan != nil && plan.Unlimited && plan.Limit != (limit.Limit{}) {
			return fmt.Errorf("plan %q: unlimited excludes all other options", name)
		}
		as := s.PlanTemplate.NormalizeName(name)
		if normal[as] {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one", name, as, p.Of)
		}
		normal[as] = true
	}
	switch {
	case len(names) == 0:
		return errors.New("plan: there are no plans")
	case p.Default != "" && p.Reject != 0:
		return fmt.Errorf("plan: default %q and reject %d exclude each other", p.Default, p.Reject)
	case p.Reject != 0:
		return checkStatus("plan: reject", p.Reject)
	case p.Default != "" && !slices.Contains(names, p.Default):
		return fmt.Errorf("plan: default must be one of %s, or reject, got %q%s", strings.Join(names, ", "), p.Default, suggest.Hint(p.Default, names))
	case p.Default == "" && s.MaxEvents == nil:
		return fmt.Errorf("plan: the default is missing: write default <plan>, or default reject %d", http.StatusForbidden)
	}
	return nil
}

func checkCost(s *zone.Spec) error {
	if err := s.Cost.Check("cost"); err != nil {
		return err
	}
	if !limit.ValidCost(s.Cost.Number) {
		return fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, s.Cost.Number)
	}
	return nil
}

func checkStatuses(s *zone.Spec) error {
	return errors.Join(
		checkStatus("invalid_limit", s.InvalidLimit), checkStatus("missing_key_status", s.MissingKeyStatus),
		checkStatus("block_status", s.BlockStatus),
	)
}

// checkStatus checks the status of a refusal.
func checkStatus(option string, status int) error {
	if status < 400 || status > 599 {
		return fmt.Errorf("%s must be from 400 to 599, got %d", option, status)
	}
	return nil
}

// checkMissingKey checks the option missing_key, which needs a key that varies.
func (z *Zone) checkMissingKey(s *zone.Spec) error {
	if z.MissingKey == "" {
		return nil
	}
	if err := oneOf("missing_key", &z.MissingKey, zone.MissingShare, zone.MissingSkip, zone.MissingReject); err != nil {
		return err
	}
	if !s.Template.Varies() {
		return fmt.Errorf("missing_key %s needs a key with a placeholder, got key %q", z.MissingKey, z.Key)
	}
	return nil
}

// checkCharge checks the options of charges that depend on the response.
func (z *Zone) checkCharge(s *zone.Spec) error {
	if err := respond.NotHTTP("cost_header", z.CostHeader); err != nil {
		return err
	}
	if m := z.ChargeOnResponse; m != nil {
		if len(m.StatusCode) == 0 && len(m.Headers) == 0 {
			return errors.New("charge on_response needs a status or a header, to say which responses count")
		}
		for _, status := range m.StatusCode {
			if status < 1 || status > 5 && status < 200 && status != http.StatusSwitchingProtocols || status > 599 {
				return fmt.Errorf("charge on_response: status must be from 200 to 599, 101, or from 1 to 5 for 1xx to 5xx, got %d", status)
			}
		}
		if err := checkReturnable(s, "charge on_response"); err != nil {
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
		return checkLateCost(s, "cost_response")
	}
	if z.CostHeader == "" {
		return nil
	}
	if strings.IndexFunc(z.CostHeader, placeholder.NotInFieldName) >= 0 {
		return fmt.Errorf("cost_header must be the name of a header, got %q", z.CostHeader)
	}
	return checkLateCost(s, "cost_header")
}

// checkLateCost checks a zone whose costs are known only after the response.
func checkLateCost(s *zone.Spec, option string) error {
	if s.Cost.Number == 0 && (s.Cost.From == "" || s.Cost.Fallback) {
		return fmt.Errorf("%s needs a cost of at least 1: a request with cost 0 is never refused, whatever earlier ones have cost", option)
	}
	return checkReturnable(s, option)
}

// checkReturnable returns an error for algorithms whose charges come back by themselves.
func checkReturnable(s *zone.Spec, option string) error {
	for _, l := range s.Limits() {
		if limit.CountsSlots(l.Algorithm) {
			return fmt.Errorf("%s has no meaning for %s: slots always come back", option, l.Algorithm)
		}
	}
	return nil
}

func checkEnforce(s *zone.Spec, log *zap.Logger) error {
	if s.Enforce == nil {
		return nil
	}
	switch share := *s.Enforce; {
	case s.DryRun:
		return errors.New("dry_run and enforce exclude each other: enforce 0 is a dry run")
	case math.IsNaN(share) || share < 0 || share > 100:
		return fmt.Errorf("enforce must be from 0 to 100 percent, got %v", share)
	case share > 0 && share < 100 && !s.Template.Varies():
		log.Warn("enforce chooses among keys, but this zone has only one", zap.String("zone", s.Name))
	}
	return nil
}

// checkChallenge checks the challenge of missing_key, if the config has one.
func (z *Zone) checkChallenge(s *zone.Spec) error {
	switch challenge := z.MissingKeyChallenge; {
	case challenge == "":
		return nil
	case s.MissingKey != zone.MissingReject:
		return errors.New("missing_key_challenge needs missing_key reject")
	case s.MissingKeyStatus != http.StatusUnauthorized:
		return fmt.Errorf("missing_key_challenge is for status 401, got %d", s.MissingKeyStatus)
	case strings.ContainsFunc(challenge, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("missing_key_challenge must be printable ASCII on one line, got %q", challenge)
	}
	if scheme, _, _ := strings.Cut(s.Challenge, " "); scheme == "" || strings.ContainsAny(scheme, `"=,;()<>@:\/[]?{}`) {
		return fmt.Errorf("missing_key_challenge must begin with the name of a scheme, such as Bearer realm=\"api\", got %q", s.Challenge)
	}
	return nil
}

// checkQueues returns an error for zones that would lose turns in a Cluster. Queues with different
// keys are on different nodes there, and the nodes charge one after the other. If the last one
// refuses, the turn in the first one cannot be given back when another request is behind it.
func (h *Handler) checkQueues(backend store.Backend) error {
	if p, ok := backend.(store.Remote); !ok || !p.Partitioned() {
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
