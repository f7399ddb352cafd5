package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// spec makes a Spec of the options, checked, without matchers and without what only a running config knows.
func (z *Zone) spec(name string, log *zap.Logger) (s zone.Spec, err error) {
	if name == "" {
		return s, errors.New("a zone needs a name")
	}
	if err := z.checkAdaptive(); err != nil {
		return s, err
	}
	z.fillIn()
	s = zone.Spec{
		Name: name, OnStoreError: z.OnStoreError, Key: z.Key,
		Limit: z.Limit, Plan: z.Plan, PlanLimits: z.Plan.Limits(&z.Limit), Lend: z.lend(),
		Cost: *z.Cost, CostRequest: z.CostRequest, ChargeOnResponse: z.ChargeOnResponse,
		CostHeader: textproto.CanonicalMIMEHeaderKey(z.CostHeader), CostBrokenOff: z.CostBrokenOff, CostResponse: z.CostResponse,
		DryRun: z.DryRun, Enforce: z.Enforce,
		MissingKey: cmp.Or(z.MissingKey, zone.MissingShare), MissingKeyStatus: z.MissingKeyStatus,
		InvalidLimit: z.InvalidLimit, BlockStatus: z.BlockStatus,
	}
	if s.Hidden, err = z.hidden(); err != nil {
		return s, err
	}
	if z.Overrides || z.Ban != nil {
		s.KeyRules = &store.KeyRules{Overrides: z.Overrides, Ban: z.Ban.rule()}
	}
	if s.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix); err != nil {
		return s, err
	}
	s.Template.Normalize()
	if z.Plan != nil && z.Plan.Of != "" {
		if s.PlanTemplate, err = key.NewText("plan", z.Plan.Of); err != nil {
			return s, err
		}
		s.PlanTemplate.Normalize()
	}
	if err := z.adapt(&s); err != nil {
		return s, err
	}
	if s.Challenge = z.MissingKeyChallenge; s.Challenge == "" && s.MissingKey == zone.MissingReject && s.MissingKeyStatus == http.StatusUnauthorized {
		s.Challenge = defaultChallenge(s.Template)
	}
	return s, z.checkSpec(&s, log)
}

// fillIn fills in defaults.
func (z *Zone) fillIn() {
	z.MissingKeyStatus = cmp.Or(z.MissingKeyStatus, http.StatusUnauthorized)
	z.InvalidLimit = cmp.Or(z.InvalidLimit, http.StatusForbidden)
	z.BlockStatus = cmp.Or(z.BlockStatus, http.StatusForbidden)
	if z.Cost == nil {
		z.Cost = &limit.Amount{Number: 1}
	}
}

// hidden reports whether no header tells clients about the zone.
func (z *Zone) hidden() (bool, error) {
	shown := z.Headers
	if err := oneOf("headers", &shown, "on", "off"); err != nil {
		return false, fmt.Errorf("%w: styles belong in rate_limit, outside of its zones", err)
	}
	return shown == "off", nil
}

// check checks the options of a zone that is not provisioned. It checks a copy, because a check fills in defaults.
func (z *Zone) check(name string) error {
	text, err := json.Marshal(z)
	if err != nil {
		return err
	}
	draft := new(Zone)
	if err := json.Unmarshal(text, draft); err != nil {
		return err
	}
	s, err := draft.spec(name, zap.NewNop())
	if err == nil {
		_, err = zone.New(s, nil)
	}
	return err
}

// defaultChallenge returns a challenge for the place where a client must send its key: that of Bearer
// for the field Authorization, and one that just names the place for others, for which there is no
// standard. It is empty if clients do not send the key as it is.
func defaultChallenge(k *key.Template) string {
	sources, _ := k.Sources()
	if len(sources) == 0 {
		return ""
	}
	if sources[0] == (key.Source{In: key.Header, Name: "Authorization"}) {
		return `Bearer realm="restricted"`
	}
	name := strconv.QuoteToASCII(sources[0].Name)
	return "ApiKey in=" + sources[0].In + ", name=" + name
}

const (
	// maxConcurrency bounds the limits of adaptive zones.
	maxConcurrency = 1_000_000

	// maxClasses bounds the classes of an adaptive zone. Requests of no class are in one more.
	maxClasses = zone.MaxClasses - 1

	// minGateWait is the shortest max_wait of an adaptive zone. Without a wait it cannot share slots.
	minGateWait = 10 * time.Millisecond
)

// adapt makes the part of a Spec that is for algorithm adaptive.
func (z *Zone) adapt(s *zone.Spec) error {
	if z.Algorithm != limit.Adaptive {
		return nil
	}
	s.Adaptive = &zone.Adaptive{Min: z.MinConcurrency, Max: z.MaxConcurrency, MaxWait: cmp.Or(time.Duration(z.MaxWait), zone.DefaultGateWait), Whole: z.HoldResponse}
	if z.Priority == nil {
		return nil
	}
	of, err := key.NewText("priority", z.Priority.Of)
	if err != nil {
		return err
	}
	of.Normalize()
	s.Adaptive.SetPriority(of, z.Priority.Classes)
	return nil
}

// checkAdaptive checks the options of algorithm adaptive, and refuses those that it cannot have.
func (z *Zone) checkAdaptive() error {
	if z.Algorithm != limit.Adaptive {
		for _, o := range []struct {
			name string
			set  bool
		}{{"priority", z.Priority != nil}, {"min_concurrency", z.MinConcurrency != 0}, {"max_concurrency", z.MaxConcurrency != 0}, {"hold_response", z.HoldResponse}} {
			if o.set {
				return fmt.Errorf("%s is for algorithm adaptive", o.name)
			}
		}
		return nil
	}
	const (
		finds    = "the limit finds itself"
		noQuota  = "there is no quota, only requests that run"
		noStore  = "it keeps nothing in a store"
		mustHold = "a limit that holds nothing back learns nothing"
	)
	l := &z.Limit
	for _, o := range []struct {
		name string
		set  bool
		why  string
	}{
		{"events", l.MaxEvents != nil, finds + ": write max for a bound"},
		{"window", l.Window != limit.Window{}, noQuota},
		{"burst", l.Burst != limit.Amount{}, noQuota},
		{"refill", l.Refill != "", noQuota},
		{"mode", l.Mode != "", "requests always wait"},
		{"align", l.Align != "", noQuota},
		{"timezone", l.Timezone != "", noQuota},
		{"lease", l.Lease != 0, noStore},
		{"cost", z.Cost != nil, "each request takes one slot, and is charged the time that it takes"},
		{"cost_request", z.CostRequest != nil, noQuota},
		{"cost_response", z.CostResponse != nil, noQuota},
		{"cost_header", z.CostHeader != "", noQuota},
		{"charge", z.ChargeOnResponse != nil, noQuota},
		{"plan", z.Plan != nil, "write priority, with the names of the plans"},
		{"overrides", z.Overrides, noStore},
		{"ban", z.Ban != nil, noStore + ": write ban in another zone"},
		{"dry_run", z.DryRun, mustHold},
		{"enforce", z.Enforce != nil, mustHold},
		{"lend", z.Lend != nil, noStore},
		{"on_store_error", z.OnStoreError != "", noStore},
		{"invalid_limit", z.InvalidLimit != 0, finds},
	} {
		if o.set {
			return fmt.Errorf("algorithm adaptive has no %s: %s", o.name, o.why)
		}
	}
	return z.checkConcurrency()
}

// checkConcurrency checks the bounds and the classes of an adaptive zone.
func (z *Zone) checkConcurrency() error {
	switch least, most := z.MinConcurrency, z.MaxConcurrency; {
	case least < 0 || least > maxConcurrency:
		return fmt.Errorf("min_concurrency must be from 1 to %d, got %d", maxConcurrency, least)
	case most < 0 || most > maxConcurrency || most != 0 && most < least:
		return fmt.Errorf("max_concurrency must be from %d to %d, got %d", max(least, 1), maxConcurrency, most)
	}
	if z.MaxWait != 0 && (time.Duration(z.MaxWait) < minGateWait || time.Duration(z.MaxWait) > time.Hour) {
		return fmt.Errorf("max_wait must be from %s to 1h, got %s", duration.Format(minGateWait), duration.Format(time.Duration(z.MaxWait)))
	}
	if z.Priority == nil {
		return nil
	}
	names := z.Priority.Classes
	switch {
	case z.Priority.Of == "":
		return errors.New("priority: of is missing: write the text that names the class of a request, such as {vars.plan}, in JSON {http.vars.plan}")
	case len(names) == 0 || len(names) > maxClasses:
		return fmt.Errorf("priority takes 1 to %d classes, got %d", maxClasses, len(names))
	}
	for i, name := range names {
		if name == "" || name == zone.ClassOthers || slices.Contains(names[:i], name) {
			return fmt.Errorf("priority: the names of classes must differ, and none is empty or %q, got %q", zone.ClassOthers, name)
		}
	}
	return nil
}

// lend returns for how long units may be held: 0 if none may.
func (z *Zone) lend() time.Duration {
	switch {
	case z.Lend == nil:
		return 0
	case *z.Lend == 0:
		return zone.SuitableLend
	}
	return time.Duration(*z.Lend)
}
