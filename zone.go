package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Zone limits a class of requests, for each client separately.
type Zone struct {
	// Which requests the zone counts: the requests that any of these matcher sets matches.
	// Default: all requests.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	// What distinguishes clients: text with placeholders, such as `{http.vars.client_ip}`.
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

	// The status with which a request is refused if a placeholder of max_events, burst
	// or cost has no valid value and no fallback, from 400 to 599. Default: 403.
	InvalidLimit int `json:"invalid_limit,omitempty"`

	// Limits for classes of clients. Default: one limit for all clients.
	Plan *limit.Plans `json:"plan,omitempty"`

	// What happens to requests without a key, which means that all placeholders of the key are
	// empty: one of `share`, `skip` or `reject`. With `share` (the default) they share one limit,
	// with `skip` this zone does not limit them, and with `reject` they are refused.
	MissingKey string `json:"missing_key,omitempty"`

	// The status with which missing_key `reject` refuses, from 400 to 599. Default: 401.
	MissingKeyStatus int `json:"missing_key_status,omitempty"`

	// The challenge of missing_key `reject` with status 401, for the header WWW-Authenticate, such
	// as `Bearer realm="api"`. The header stays as it is if something has set it. Default:
	// `Bearer realm="restricted"` if the key is the header Authorization, a challenge that says
	// where the key belongs, such as `ApiKey in=header, name="X-Api-Key"`, if it is another
	// header, a query parameter or a cookie, and none otherwise.
	MissingKeyChallenge string `json:"missing_key_challenge,omitempty"`

	// Whether the zone may use placeholders that nothing in this config sets, as far as can be seen.
	// Otherwise they are an error, because they are empty for all clients. Default: false.
	AllowUnknownPlaceholders bool `json:"allow_unknown_placeholders,omitempty"`

	// Which requests the zone neither counts nor refuses: the requests that any of these matcher
	// sets matches. Default: none.
	ExemptRaw caddyhttp.RawMatcherSets `json:"exempt,omitempty" caddy:"namespace=http.matchers"`

	// Which requests are refused without asking the store: the requests that any of these matcher
	// sets matches, also if they are exempt. Default: none.
	BlockRaw caddyhttp.RawMatcherSets `json:"block,omitempty" caddy:"namespace=http.matchers"`

	// The status with which block refuses, from 400 to 599. Default: 403.
	BlockStatus int `json:"block_status,omitempty"`

	// Which responses count: the responses with one of these statuses and all of these
	// headers. The request is charged before it is handled, so that a burst cannot slip through, and
	// the charge is given back if the response does not count. Default: all responses.
	ChargeOnResponse *caddyhttp.ResponseMatcher `json:"charge_on_response,omitempty"`

	// The header or trailer of the response in which the upstream says what the request has
	// cost: a whole number. It replaces cost. What exceeds the limit is a debt that delays later
	// requests. It is removed from the response. Default: none.
	CostHeader string `json:"cost_header,omitempty"`

	// What a request costs if the client or the upstream breaks the response off before it has a
	// cost_header, from 0 to 1000000000000. Default: cost.
	CostBrokenOff *int64 `json:"cost_broken_off,omitempty"`

	// Where the body of the response says what the request has cost, which replaces cost. What exceeds
	// the limit is a debt that delays later requests. Default: the response is not read.
	CostResponse *cost.Response `json:"cost_response,omitempty"`

	// Whether the admin API and `caddy rate-limit` may set overrides for single keys: another
	// limit, an exemption or a ban. They hold in all instances that share the store, from the next
	// request on. Default: false.
	Overrides bool `json:"overrides,omitempty"`

	// When a key that continues to send requests although it is refused is banned. Default: never.
	Ban *Ban `json:"ban,omitempty"`

	// Whether headers tell clients about the zone: either `on` or `off`. `on` (the default) is for all that the handler
	// sends. With `off`, refusals do not name the zone or its numbers in their bodies either. Retry-After is always sent
	// with a refusal.
	Headers string `json:"headers,omitempty"`

	// Whether the zone decides, counts and logs, but refuses nothing. Default: false.
	DryRun bool `json:"dry_run,omitempty"`

	// The share of keys for which the limit is enforced, in percent from 0 to 100. For other keys
	// the zone is a dry run. All instances choose the same keys, and a key stays chosen when the
	// share grows. Default: 100.
	Enforce *float64 `json:"enforce,omitempty"`

	// For how long an instance may hold units of the limit that the store has charged ahead, for a key that comes often. It is from
	// 10ms to 10s, and at most a tenth of the time in which the limit comes back. The instance decides most requests of such a key by itself, and
	// still no more requests pass than the limit allows. 0 is what suits the limits, and recommended: a twentieth of this time, for
	// `sliding_window_log` a fiftieth, and at most 5s. Not for limits of concurrency, and not for queues. Needs a store that several
	// instances share. Default: each request asks.
	Lend *caddy.Duration `json:"lend,omitempty"`

	// What happens to requests of this zone while the store does not answer: one of `allow`, `deny`
	// or `local`. If a request meets zones with different values, one `deny` is enough to deny it, and
	// zones with `local` decide together. Default: the handler's on_store_error.
	OnStoreError string `json:"on_store_error,omitempty"`

	live     *zone.Zone // what requests meet; nil before it is provisioned
	counters string     // the key of its counters in the pool; empty before they are acquired
}

// Distributed is how github.com/mholt/caddy-ratelimit synchronizes instances. It has no effect here:
// instances enforce one limit if they share a store such as `redis`.
type Distributed struct {
	// Has no effect.
	ReadInterval caddy.Duration `json:"read_interval,omitempty"`

	// Has no effect.
	WriteInterval caddy.Duration `json:"write_interval,omitempty"`

	// Has no effect.
	PurgeAge caddy.Duration `json:"purge_age,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (z *Zone) UnmarshalJSON(text []byte) error {
	type alias Zone
	return option.JSON(text, (*alias)(z), map[string]string{
		"events": "max_events", "limit": "max_events and window", "rate": "max_events and window",
	})
}

// provision makes the zone that requests meet.
func (z *Zone) provision(ctx caddy.Context, h *Handler, app *App, name string, around *routes.Routes, log *zap.Logger) error {
	config, err := json.Marshal(z)
	if err != nil {
		return err
	}
	z.counters = pool.ZoneKey(h.store.ID, name)
	state := pool.AcquireZone(z.counters)
	spec, err := z.spec(name, log)
	if err != nil {
		return err
	}
	spec.JSON, spec.Index, spec.StoreID, spec.Salt = config, len(h.zones), h.store.ID, state.Salt
	spec.OnStoreError = cmp.Or(spec.OnStoreError, h.OnStoreError)
	exempt := slices.Clone(z.ExemptRaw) // which loading clears
	if err := z.loadMatchers(ctx, &spec); err != nil {
		return err
	}
	if z.live, err = zone.New(spec, &state.Counters); err != nil {
		return err
	}
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	z.warnAboutTimeouts(server, log)
	return z.warn(exempt, clientip.SourceIn(ctx), around, log)
}

// provisionZones makes the zones.
func (h *Handler) provisionZones(ctx caddy.Context, app *App, around *routes.Routes) error {
	for _, name := range slices.Sorted(maps.Keys(h.RateLimits)) {
		z := h.RateLimits[name]
		if z == nil {
			z = new(Zone)
			h.RateLimits[name] = z
		}
		if err := z.provision(ctx, h, app, name, around, h.logger); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		if err := app.define(z.live, h.store); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		h.zones = append(h.zones, z.live)
	}
	for _, z := range h.zones {
		warnIfShadowed(z, h.zones, h.logger)
	}
	return nil
}

// loadMatchers loads the matchers of the zone, and finds the fields of bodies that it looks at.
func (z *Zone) loadMatchers(ctx caddy.Context, s *zone.Spec) error {
	// Loading clears them.
	match, exempt, block := slices.Clone(z.MatcherSetsRaw), slices.Clone(z.ExemptRaw), slices.Clone(z.BlockRaw)
	err := cmp.Or(
		z.load(ctx, "MatcherSetsRaw", z.MatcherSetsRaw, &s.Matchers),
		z.load(ctx, "ExemptRaw", z.ExemptRaw, &s.Exempt),
		z.load(ctx, "BlockRaw", z.BlockRaw, &s.Block),
	)
	if err != nil {
		return err
	}
	return s.FindFields(zone.OptionMatchers{Raw: match, Loaded: s.Matchers}, zone.OptionMatchers{Raw: exempt, Loaded: s.Exempt},
		zone.OptionMatchers{Raw: block, Loaded: s.Block})
}

// load loads the matchers in a field of the zone.
func (z *Zone) load(ctx caddy.Context, field string, raw caddyhttp.RawMatcherSets, to *caddyhttp.MatcherSets) error {
	if len(raw) == 0 {
		return nil
	}
	sets, err := ctx.LoadModule(z, field)
	if err != nil {
		return fmt.Errorf("loading matchers: %w", err)
	}
	return to.FromInterface(sets)
}

// release releases what provision has acquired.
func (z *Zone) release() {
	if z.counters != "" {
		pool.ReleaseZone(z.counters)
		z.counters = ""
	}
}
