package caddyratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Zone is a limit on a class of requests, for each client on its own.
type Zone struct {
	// Which requests the zone counts: those that any of these matcher sets matches.
	// Default: all.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	// What tells clients apart: text with placeholders, such as `{http.vars.client_ip}`.
	// Requests with the same text share a limit, and so do all requests without one.
	// A placeholder that Caddy does not know is an error, because it would put all
	// clients together. Default: none, one limit for all requests of the zone.
	Key string `json:"key,omitempty"`

	// How many leading bits of an IPv4 address count, from 1 to 32, where the key is an
	// address. Default: 32.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`

	// How many leading bits of an IPv6 address count, from 1 to 128, where the key is an
	// address. Default: 64 where the key is one of Caddy's placeholders for the client's
	// address, for a client commonly has a whole /64 to choose from; else 128.
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`

	limit.Limit

	// What a request takes from the limit. Takes a placeholder, such as
	// `"{http.vars.tokens} 1"`; whoever sets it to 0 passes. Default: 1. With 0 it is
	// counted by nothing and only told how much is left.
	Cost *limit.Amount `json:"cost,omitempty"`

	// The status of a refusal because a placeholder of max_events, window, burst, timezone
	// or cost has no value and no fallback, or none that is a valid limit. Default: 403.
	InvalidLimit int `json:"invalid_limit,omitempty"`

	// Limits by class of client. Default: one limit for all.
	Plan *limit.Plans `json:"plan,omitempty"`

	// What becomes of requests without a key, which is where all placeholders of the key are
	// empty: they `share` one limit of their own (the default), are not limited by this
	// zone (`skip`), or are refused (`reject`).
	MissingKey string `json:"missing_key,omitempty"`

	// The status with which missing_key `reject` refuses. Default: 401.
	MissingKeyStatus int `json:"missing_key_status,omitempty"`

	// What becomes of requests that have different values for a placeholder of the key or of
	// the plan, such as two cookies of one name: the upstream may take any of them, so a
	// client could choose its key. They are refused (`reject`, the default), or all values
	// are joined with commas (`join`).
	RepeatedValues string `json:"repeated_values,omitempty"`

	// The status with which repeated_values `reject` refuses. Default: 400.
	RepeatedValuesStatus int `json:"repeated_values_status,omitempty"`

	// Whether hosts and paths in the key and the plan are as the client wrote them. If not,
	// they are in the form that Caddy's matchers compare, so that `/login`, `/LOGIN` and
	// `//login` are one. Default: false.
	RawValues bool `json:"raw_values,omitempty"`

	// Which requests the zone leaves alone: those that any of these matcher sets matches.
	// Default: none.
	ExemptRaw caddyhttp.RawMatcherSets `json:"exempt,omitempty" caddy:"namespace=http.matchers"`

	// Which requests are refused without asking the store: those that any of these matcher
	// sets matches, also if they are exempt. Default: none.
	BlockRaw caddyhttp.RawMatcherSets `json:"block,omitempty" caddy:"namespace=http.matchers"`

	// The status with which block refuses. Default: 403.
	BlockStatus int `json:"block_status,omitempty"`

	// Which responses count: those with one of these statuses and all of these header
	// fields. The charge is booked before the request is handled, so that no burst slips in
	// between, and given back when the response is another one. Default: all.
	ChargeOnResponse *caddyhttp.ResponseMatcher `json:"charge_on_response,omitempty"`

	// The response's header field that says what the request has cost, if that is known
	// late: a whole number, which replaces what was booked as cost. What is above the limit
	// is debt, which later requests wait for. It does not reach the client; it may also be a
	// trailer. Default: none.
	CostHeader string `json:"cost_header,omitempty"`

	// What a request costs if its response is broken off, by the client or the upstream,
	// before cost_header has come. Default: what was booked as cost.
	CostBrokenOff *int64 `json:"cost_broken_off,omitempty"`

	// Whether keys may have settings in the store: a limit of their own, an exemption or a
	// ban, for the whole fleet and from the next request on. Default: false.
	Overrides bool `json:"overrides,omitempty"`

	// When a key that keeps asking although it is refused is banned. Default: never.
	Ban *Ban `json:"ban,omitempty"`

	// Decides, counts and logs, but refuses nothing. Default: false.
	DryRun bool `json:"dry_run,omitempty"`

	// For how many of the keys the limit is enforced, in percent; for the others it is a
	// dry run. Which keys these are is the same on all instances, and they stay among them
	// when the share grows. Default: 100.
	Enforce *float64 `json:"enforce,omitempty"`

	// Keeps a share of the slots of `concurrency` for the requests that matter. What the
	// zone refuses is answered with status 503. Default: none.
	Reserve *Reserve `json:"reserve,omitempty"`

	// What happens to requests of this zone while the store gives no answer: `allow`,
	// `deny` or `local`. Default: what the handler says. If zones that one request meets
	// differ, one that denies is enough to deny, and those that are `local` decide together.
	OnStoreError string `json:"on_store_error,omitempty"`

	live     *zone.Zone // once it is provisioned
	counters string     // key of its counters in the pool, once it has joined those who share them
}

func (z *Zone) provision(ctx caddy.Context, name string, kept *pool.Ref, log *zap.Logger) error {
	z.live = &zone.Zone{Name: name, Limit: z.Limit, Plan: z.Plan}
	if name == "" {
		return errors.New("a zone needs a name")
	}
	var err error
	if z.live.JSON, err = json.Marshal(z); err != nil {
		return err
	}
	if z.OnStoreError != "" {
		if err := checkOnStoreError(z.OnStoreError); err != nil {
			return err
		}
	}
	for _, part := range []func(caddy.Context, *zap.Logger) error{
		z.provisionKey, z.provisionMatchers,
		func(_ caddy.Context, log *zap.Logger) error { return z.provisionLimits(kept, log) },
		z.provisionPolicies,
	} {
		if err := part(ctx, log); err != nil {
			return err
		}
	}
	z.compile()
	return nil
}

// compile takes over what the zone's policies look at when a request comes.
func (z *Zone) compile() {
	l := z.live
	l.Exceeded = fmt.Errorf("rate limit of zone %q exceeded", l.Name)
	l.Description = z.describe()
	l.Key, l.Cost, l.CostHeader, l.CostBrokenOff = z.Key, z.Cost, z.CostHeader, z.CostBrokenOff
	l.ChargeOnResponse, l.MissingKey, l.Overrides = z.ChargeOnResponse, z.MissingKey, z.Overrides
	l.DryRun, l.Enforce = z.DryRun, z.Enforce
	l.InvalidLimit, l.BlockStatus = z.InvalidLimit, z.BlockStatus
	l.MissingKeyStatus, l.RepeatedValuesStatus = z.MissingKeyStatus, z.RepeatedValuesStatus
	if z.Reserve != nil {
		l.Reserve = z.Reserve.matchers
	}
}

func (z *Zone) provisionMatchers(ctx caddy.Context, _ *zap.Logger) error {
	for _, m := range []struct {
		field string
		raw   caddyhttp.RawMatcherSets
		to    *caddyhttp.MatcherSets
	}{
		{"MatcherSetsRaw", z.MatcherSetsRaw, &z.live.Matchers},
		{"ExemptRaw", z.ExemptRaw, &z.live.Exempt},
		{"BlockRaw", z.BlockRaw, &z.live.Block},
	} {
		if err := loadMatchers(ctx, z, m.field, m.raw, m.to); err != nil {
			return err
		}
	}
	return nil
}

// loadMatchers makes matchers of what stands in a field.
func loadMatchers(ctx caddy.Context, of any, field string, raw caddyhttp.RawMatcherSets, to *caddyhttp.MatcherSets) error {
	if len(raw) == 0 {
		return nil
	}
	sets, err := ctx.LoadModule(of, field)
	if err != nil {
		return fmt.Errorf("loading matchers: %w", err)
	}
	return to.FromInterface(sets)
}

// provisionLimits makes ready what requests are granted and what they cost.
func (z *Zone) provisionLimits(kept *pool.Ref, log *zap.Logger) (err error) {
	z.counters = pool.ZoneKey(kept.ID, z.live.Name)
	joined := pool.AcquireZone(z.counters)
	z.live.Stats, z.live.StoreID = &joined.Counters, kept.ID
	m := zone.PolicyBuilder{Zone: z.live.Name, Limit: z.Limit, Salt: joined.Salt, Reserve: z.Reserve.percent()}
	if err := z.Reserve.check(z); err != nil {
		return err
	}
	if z.Plan == nil || z.MaxEvents != nil {
		if z.live.OwnPolicies, err = zone.NewPolicies(m); err != nil {
			return err
		}
	}
	if z.Plan != nil {
		if err := z.provisionPlans(m); err != nil {
			return err
		}
	} else {
		z.live.Policy = z.live.OwnPolicies.Fixed
	}
	if z.Cost == nil {
		z.Cost = &limit.Amount{Number: 1}
	}
	if err := z.Cost.Check("cost"); err != nil {
		return err
	}
	if z.live.FixedCost = z.Cost.Number; !limit.ValidCost(z.live.FixedCost) {
		return fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, z.live.FixedCost)
	}
	if g := z.live.Policy; g != nil && z.Cost.From == "" && z.live.FixedCost > g.MaxCost() && g.Numbers.Events > 0 {
		log.Warn("the cost is above what the limit can ever grant; every request of this zone is refused",
			zap.String("zone", z.live.Name), zap.Int64("cost", z.live.FixedCost), zap.Int64("limit", g.MaxCost()))
	}
	return nil
}

// provisionPolicies makes ready what looks at each request.
func (z *Zone) provisionPolicies(ctx caddy.Context, log *zap.Logger) error {
	for _, s := range []struct {
		name   string
		status *int
		usual  int
	}{
		{"invalid_limit", &z.InvalidLimit, http.StatusForbidden},
		{"missing_key_status", &z.MissingKeyStatus, http.StatusUnauthorized},
		{"repeated_values_status", &z.RepeatedValuesStatus, http.StatusBadRequest},
		{"block_status", &z.BlockStatus, http.StatusForbidden},
	} {
		if *s.status == 0 {
			*s.status = s.usual
		}
		if err := refusing(s.name, *s.status); err != nil {
			return err
		}
	}
	if err := z.Reserve.provision(ctx); err != nil {
		return err
	}
	if err := z.checkMissingKey(); err != nil {
		return err
	}
	if err := z.checkRepeatedValues(); err != nil {
		return err
	}
	if err := z.checkRawValues(); err != nil {
		return err
	}
	if err := respond.NotHTTP("cost_header", z.CostHeader); err != nil {
		return err
	}
	if err := z.checkCharge(); err != nil {
		return err
	}
	if err := z.provisionRollout(log); err != nil {
		return err
	}
	if err := z.provisionSanctions(); err != nil {
		return err
	}
	z.live.ChargesLate = z.ChargeOnResponse != nil || z.CostHeader != ""
	z.live.HasPolicies = z.live.Policy == nil || z.Cost.From != "" || len(z.live.Exempt) > 0 || len(z.live.Block) > 0 ||
		z.MissingKey != "" && z.MissingKey != zone.MissingShare || z.Reserve != nil || z.DryRun || z.Enforce != nil
	return nil
}

// refusing judges the status of a refusal.
func refusing(option string, status int) error {
	if status < 400 || status > 599 {
		return fmt.Errorf("%s must be from 400 to 599, got %d", option, status)
	}
	return nil
}

// describe says what requests are granted, in which all uses of the zone's name agree.
func (z *Zone) describe() string {
	var text string
	if z.MaxEvents != nil {
		text = z.Limit.Describe()
	}
	if z.Plan != nil {
		if text != "" {
			text += " and "
		}
		text += z.Plan.Describe(&z.Limit)
	}
	if z.Reserve != nil {
		text += fmt.Sprintf(" with %v %% reserved", z.Reserve.Percent)
	}
	if z.Overrides {
		text += " with overrides"
	}
	if z.Ban != nil {
		text += z.Ban.describe()
	}
	return text
}

// release gives back what provision took.
func (z *Zone) release() {
	if z.counters != "" {
		pool.ReleaseZone(z.counters)
		z.counters = ""
	}
}
