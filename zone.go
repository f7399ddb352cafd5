package caddyratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Zone limits a class of requests, for each client separately.
type Zone struct {
	// Which requests the zone counts: the requests that any of these matcher sets matches.
	// Default: all requests.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	// What tells clients apart: text with placeholders, such as `{http.vars.client_ip}`.
	// Requests whose text is the same share a limit. If no placeholder has a value, they share one
	// too; see missing_key. A placeholder that Caddy does not know is an error, because all clients
	// would share one limit. Choose something that clients cannot choose: with a header as
	// the key, a client gets a new limit with each value that it sends. Default: none, which is one
	// limit for all requests of the zone.
	Key string `json:"key,omitempty"`

	// The number of leading bits of an IPv4 address that count, from 1 to 32, where a placeholder
	// of the key is an address. Default: 32.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`

	// The number of leading bits of an IPv6 address that count, from 1 to 128, where a placeholder
	// of the key is an address. Default: 64 for Caddy's placeholders of the client's address,
	// because a client can usually choose any address of a whole /64; 128 for others.
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`

	limit.Limit

	// What a request takes from the limit, from 0 to 1000000000000. May be a placeholder with a
	// fallback, such as `"{http.vars.tokens} 1"`. A cost of 0 is always allowed and charges
	// nothing; the response still says what is left. Do not take the cost from anything that
	// clients control. Default: 1.
	Cost *limit.Amount `json:"cost,omitempty"`

	// What a request costs before its response by what its body says, if that is more than cost. Default:
	// cost.
	CostRequest *cost.Request `json:"cost_request,omitempty"`

	// The status with which a request is refused if a placeholder of max_events, window, burst,
	// timezone or cost has no valid value and no fallback, from 400 to 599. Default: 403.
	InvalidLimit int `json:"invalid_limit,omitempty"`

	// Limits for classes of clients. Default: one limit for all clients.
	Plan *limit.Plans `json:"plan,omitempty"`

	// What happens to requests without a key, which means that all placeholders of the key are
	// empty: one of `share`, `skip` or `reject`. With `share` (the default) they share one limit,
	// with `skip` this zone does not limit them, and with `reject` they are refused.
	MissingKey string `json:"missing_key,omitempty"`

	// The status of missing_key `reject`, from 400 to 599. Default: 401.
	MissingKeyStatus int `json:"missing_key_status,omitempty"`

	// The challenge of missing_key `reject` with status 401, for the field WWW-Authenticate, such
	// as `Bearer realm="api"`. The field stays as it is if something has set it. Default:
	// `Bearer realm="restricted"` if the key is the field Authorization, a challenge that says
	// where the key belongs, such as `ApiKey in=header, name="X-Api-Key"`, if it is another
	// header, a query parameter or a cookie, and none otherwise.
	MissingKeyChallenge string `json:"missing_key_challenge,omitempty"`

	// What happens to requests with different values for a placeholder of the key or the plan,
	// such as two cookies of one name: either `reject` or `join`. The upstream may use any of the
	// values, so a client could choose its key. With `reject` (the default) they are refused, with
	// `join` the key has all values, joined with commas.
	RepeatedValues string `json:"repeated_values,omitempty"`

	// The status of repeated_values `reject`, from 400 to 599. Default: 400.
	RepeatedValuesStatus int `json:"repeated_values_status,omitempty"`

	// Whether hosts and paths in the key and the plan stay as the client wrote them. Otherwise they
	// are brought into the form that Caddy's matchers compare, in which `/login`, `/LOGIN` and
	// `//login` are the same. Default: false.
	RawValues bool `json:"raw_values,omitempty"`

	// Whether the zone may use placeholders that nothing in this config sets, as far as can be seen.
	// Otherwise they are an error, because they are empty for all clients. Default: false.
	AllowUnknownPlaceholders bool `json:"allow_unknown_placeholders,omitempty"`

	// Which requests the zone neither counts nor refuses: the requests that any of these matcher
	// sets matches. Default: none.
	ExemptRaw caddyhttp.RawMatcherSets `json:"exempt,omitempty" caddy:"namespace=http.matchers"`

	// Which requests are refused without asking the store: the requests that any of these matcher
	// sets matches, also if they are exempt. Default: none.
	BlockRaw caddyhttp.RawMatcherSets `json:"block,omitempty" caddy:"namespace=http.matchers"`

	// The status of block, from 400 to 599. Default: 403.
	BlockStatus int `json:"block_status,omitempty"`

	// Which responses count: the responses with one of these statuses and all of these
	// headers. The request is charged before it is handled, so that a burst cannot slip through, and
	// the charge is given back if the response does not count. Default: all responses.
	ChargeOnResponse *caddyhttp.ResponseMatcher `json:"charge_on_response,omitempty"`

	// The header or trailer of the response in which the upstream says what the request has
	// cost: a whole number. It replaces cost. What exceeds the limit is a debt that delays later
	// requests. The field is removed from the response. Default: none.
	CostHeader string `json:"cost_header,omitempty"`

	// What a request costs if the client or the upstream breaks the response off before it has a
	// cost_header, from 0 to 1000000000000. Default: cost.
	CostBrokenOff *int64 `json:"cost_broken_off,omitempty"`

	// Where the body of the response says what the request has cost, which replaces cost. What exceeds
	// the limit is a debt that delays later requests. Default: nowhere.
	CostResponse *cost.Response `json:"cost_response,omitempty"`

	// Whether the admin API and `caddy rate-limit` may set overrides for single keys: another
	// limit, an exemption or a ban. They hold in all instances that share the store, from the next
	// request on. Default: false.
	Overrides bool `json:"overrides,omitempty"`

	// When a key that continues to send requests although it is refused is banned. Default: never.
	Ban *Ban `json:"ban,omitempty"`

	// Whether the zone decides, counts and logs, but refuses nothing. Default: false.
	DryRun bool `json:"dry_run,omitempty"`

	// The share of keys for which the limit is enforced, in percent from 0 to 100. For other keys
	// the zone is a dry run. All instances choose the same keys, and a key stays chosen when the
	// share grows. Default: 100.
	Enforce *float64 `json:"enforce,omitempty"`

	// The share of the limit, in percent above 0 and at most 100, that must be used for a request
	// that passes to count as near the limit. Such requests are in the metric
	// near_limit_requests_total, and emit the event rate_limit_near_limit. Default: 80.
	NearLimit *float64 `json:"near_limit,omitempty"`

	// Reserves a share of the slots of `concurrency` for important requests. Refused requests get
	// status 503. Default: none.
	Reserve *Reserve `json:"reserve,omitempty"`

	// How often an instance asks the store for a part of the limit of a key that comes often, from 10ms
	// to 10s and at most a third of the window. It decides most requests of such a key by itself, and still no more requests pass than
	// the limit allows. Needs a store that several instances share. Default: each request asks.
	Lend caddy.Duration `json:"lend,omitempty"`

	// What happens to requests of this zone while the store does not answer: one of `allow`, `deny`
	// or `local`. If a request meets zones with different values, one `deny` is enough to deny it, and
	// zones with `local` decide together. Default: the handler's on_store_error.
	OnStoreError string `json:"on_store_error,omitempty"`

	live     *zone.Zone // the zone at run time; nil before it is provisioned
	counters string     // the key of its counters in the pool; empty before they are acquired
}

// defaultNearLimit is the near_limit of zones that give none, as in github.com/envoyproxy/ratelimit.
const defaultNearLimit = 80

// UnmarshalJSON implements [json.Unmarshaler].
func (z *Zone) UnmarshalJSON(text []byte) error {
	type plain Zone
	return option.JSON(text, (*plain)(z), map[string]string{
		"events": "max_events", "limit": "max_events and window", "rate": "max_events and window",
	})
}

// provision makes the zone that requests meet.
func (z *Zone) provision(ctx caddy.Context, name string, ref *pool.Ref, around *routes.Routes, log *zap.Logger) error {
	config, err := json.Marshal(z)
	if err != nil {
		return err
	}
	z.counters = pool.ZoneKey(ref.ID, name)
	state := pool.AcquireZone(z.counters)
	if err := z.compile(name, state.Salt, log); err != nil {
		return err
	}
	z.live.JSON, z.live.Stats, z.live.StoreID = config, &state.Counters, ref.ID
	exempt := slices.Clone(z.ExemptRaw) // which loading clears
	if err := z.loadMatchers(ctx); err != nil {
		return err
	}
	return z.warn(exempt, around, log)
}

// check checks the options of a zone that is not provisioned.
func (z *Zone) check(name string) error {
	draft := *z
	return draft.compile(name, 0, zap.NewNop())
}

// compile makes of the options, except for matchers, what requests meet. The salt tells generations
// of the zone apart.
func (z *Zone) compile(name string, salt uint64, log *zap.Logger) error {
	z.live = &zone.Zone{
		Name: name, Exceeded: fmt.Errorf("rate limit of zone %q exceeded", name), Limit: z.Limit, Plan: z.Plan,
	}
	if name == "" {
		return errors.New("a zone needs a name")
	}
	if z.OnStoreError != "" {
		if err := checkOnStoreError(z.OnStoreError); err != nil {
			return err
		}
	}
	if err := z.compileKey(log); err != nil {
		return err
	}
	if err := z.compileLimits(salt, log); err != nil {
		return err
	}
	if err := z.compilePolicies(log); err != nil {
		return err
	}
	l := z.live
	l.Description = z.describe()
	l.Key, l.Cost, l.CostHeader, l.CostBrokenOff = z.Key, z.Cost, z.CostHeader, z.CostBrokenOff
	l.CostRequest, l.CostResponse, l.ChargeOnResponse = z.CostRequest, z.CostResponse, z.ChargeOnResponse
	l.MissingKey, l.Overrides = z.MissingKey, z.Overrides
	l.DryRun, l.Enforce = z.DryRun, z.Enforce
	if l.NearLimit = defaultNearLimit; z.NearLimit != nil {
		l.NearLimit = *z.NearLimit
	}
	if !(l.NearLimit > 0 && l.NearLimit <= 100) {
		return fmt.Errorf("near_limit must be above 0 and at most 100 percent, got %v", l.NearLimit)
	}
	l.InvalidLimit, l.BlockStatus = z.InvalidLimit, z.BlockStatus
	l.MissingKeyStatus, l.RepeatedValuesStatus = z.MissingKeyStatus, z.RepeatedValuesStatus
	l.DescribeRejections()
	return l.CheckChallenge(z.MissingKeyChallenge)
}

// loadMatchers loads the matchers of the zone.
func (z *Zone) loadMatchers(ctx caddy.Context) error {
	if err := loadMatchers(ctx, z, "MatcherSetsRaw", z.MatcherSetsRaw, &z.live.Matchers); err != nil {
		return err
	}
	if err := loadMatchers(ctx, z, "ExemptRaw", z.ExemptRaw, &z.live.Exempt); err != nil {
		return err
	}
	if err := loadMatchers(ctx, z, "BlockRaw", z.BlockRaw, &z.live.Block); err != nil {
		return err
	}
	if z.Reserve == nil {
		return nil
	}
	return loadMatchers(ctx, z.Reserve, "MatcherSetsRaw", z.Reserve.MatcherSetsRaw, &z.live.Reserve)
}

// loadMatchers loads the matchers in a field of a struct.
func loadMatchers(ctx caddy.Context, owner any, field string, raw caddyhttp.RawMatcherSets, to *caddyhttp.MatcherSets) error {
	if len(raw) == 0 {
		return nil
	}
	sets, err := ctx.LoadModule(owner, field)
	if err != nil {
		return fmt.Errorf("loading matchers: %w", err)
	}
	return to.FromInterface(sets)
}

// compileLimits compiles limits and costs.
func (z *Zone) compileLimits(salt uint64, log *zap.Logger) (err error) {
	m := zone.PolicyBuilder{Zone: z.live.Name, Limit: z.Limit, Salt: salt, Reserve: z.Reserve.percent(), Lend: time.Duration(z.Lend)}
	z.live.Builder = m
	if err := z.checkLend(); err != nil {
		return err
	}
	if err := z.Reserve.check(z); err != nil {
		return err
	}
	if z.Plan == nil || z.MaxEvents != nil {
		if z.live.OwnPolicies, err = zone.NewPolicies(m); err != nil {
			return err
		}
	}
	if z.Plan != nil {
		if err := z.compilePlans(m); err != nil {
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
		log.Warn("the cost is above what the limit can ever allow, so every request of this zone is refused; "+lowerCost.With().String(),
			zap.String("zone", z.live.Name), zap.Int64("cost", z.live.FixedCost), zap.Int64("limit", g.MaxCost()))
	}
	return nil
}

// compilePolicies checks the options that look at single requests.
func (z *Zone) compilePolicies(log *zap.Logger) error {
	for _, s := range []struct {
		name       string
		status     *int
		usedIfZero int
	}{
		{"invalid_limit", &z.InvalidLimit, http.StatusForbidden},
		{"missing_key_status", &z.MissingKeyStatus, http.StatusUnauthorized},
		{"repeated_values_status", &z.RepeatedValuesStatus, http.StatusBadRequest},
		{"block_status", &z.BlockStatus, http.StatusForbidden},
	} {
		if *s.status == 0 {
			*s.status = s.usedIfZero
		}
		if err := checkStatus(s.name, *s.status); err != nil {
			return err
		}
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
	if err := z.compileEnforce(log); err != nil {
		return err
	}
	if err := z.compileKeyRules(); err != nil {
		return err
	}
	z.live.ChargesLate = z.ChargeOnResponse != nil || z.CostHeader != "" || z.CostResponse != nil
	z.live.HasPolicies = z.live.Policy == nil || z.Cost.From != "" || len(z.ExemptRaw) > 0 || len(z.BlockRaw) > 0 ||
		z.CostRequest != nil || z.MissingKey != "" && z.MissingKey != zone.MissingShare || z.Reserve != nil || z.DryRun || z.Enforce != nil
	return nil
}

// checkStatus checks the status of a refusal.
func checkStatus(option string, status int) error {
	if status < 400 || status > 599 {
		return fmt.Errorf("%s must be from 400 to 599, got %d", option, status)
	}
	return nil
}

// describe describes what all zones of the same name must agree on.
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
	if z.Lend != 0 {
		text += " lent every " + duration.Format(time.Duration(z.Lend))
	}
	if z.Overrides {
		text += " with overrides"
	}
	if z.Ban != nil {
		text += z.Ban.describe()
	}
	return text
}

// release releases what provision has acquired.
func (z *Zone) release() {
	if z.counters != "" {
		pool.ReleaseZone(z.counters)
		z.counters = ""
	}
}
