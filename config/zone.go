// Package config is what a config says of limits: structs whose fields are the options in JSON, and whose tags say what
// can be written in a Caddyfile, which values an option can have, and which one it has by default: see package option.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Zone limits a class of requests, for each client separately.
type Zone struct {
	// Which requests the zone counts: the requests that any of these matcher sets matches.
	// Default: all requests.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers" syntax:"<matcher>" repeats:"true" default:"=all requests"`

	// What distinguishes clients: text with placeholders, such as `{http.vars.client_ip}`.
	// Requests whose text is the same share a limit. Choose something that clients cannot choose: with a header as
	// the key, a client gets a new limit with each value that it sends. Default: none, which is one
	// limit for all requests of the zone.
	Key string `json:"key,omitempty" default:"=one limit for all"`

	// The number of leading bits of an IPv4 address that count, from 1 to 32, where a placeholder
	// of the key is an address. Default: 32.
	IPv4Prefix int `json:"ipv4_prefix,omitempty" range:"1..32" unit:"bits" default:"=32"`

	// The number of leading bits of an IPv6 address that count, from 1 to 128, where a placeholder
	// of the key is an address. Default: 64 for Caddy's placeholders of the client's address,
	// because a client can usually choose any address of a whole /64; 128 for others.
	IPv6Prefix int `json:"ipv6_prefix,omitempty" range:"1..128" unit:"bits" default:"=64 for {client_ip} and {remote_host}, else 128"`

	Limit

	// What a request takes from the limit before it is handled, from 0 to 1000000000000. May be a placeholder with a
	// fallback, such as `"{http.vars.tokens} 1"`. A cost of 0 is always allowed and charges nothing; the response still says
	// what is left. With a field of a JSON body, such as `"{http.rate_limit.json.max_tokens} 4000"`, the cost is at least
	// the fallback. Do not take it from anything else that clients control. Default: 1.
	Cost *Amount `json:"cost,omitempty" range:"0..1000000000000" unit:"events" syntax:"<n> | <placeholder> [<n>]" default:"1"`

	// What a request costs in the end, by its response. Default: cost.
	Charge *Charge `json:"charge,omitempty" default:"=cost, for all responses"`

	// Limits for classes of clients. Default: one limit for all clients.
	Plan *Plans `json:"plan,omitempty" syntax:"<text> { ... }" default:"=one limit for all"`

	// What happens to requests without a key, which means that all placeholders of the key are
	// empty: one of `share`, `skip` or `reject`. With `share` (the default) they share one limit,
	// with `skip` this zone does not limit them, and with `reject` they are refused, with status 401 or
	// another one from 400 to 599, as in `"reject 403"`. With 401, WWW-Authenticate says where the key belongs.
	MissingKey Otherwise `json:"missing_key,omitzero" words:"share|skip|reject" syntax:"share|skip | reject [<status>]" default:"share"`

	// Which requests the zone neither counts nor refuses: the requests that any of these matcher
	// sets matches. Default: none.
	ExemptRaw caddyhttp.RawMatcherSets `json:"exempt,omitempty" caddy:"namespace=http.matchers" syntax:"<address|CIDR>... | <matcher>" repeats:"true" default:"=none"`

	// Which requests are refused with status 403 without asking the store: the requests that any of these matcher
	// sets matches, even if they are exempt. Default: none.
	BlockRaw caddyhttp.RawMatcherSets `json:"block,omitempty" caddy:"namespace=http.matchers" syntax:"<address|CIDR>... | <matcher>" repeats:"true" default:"=none"`

	// Whether the admin API and `caddy rate-limit` may set overrides for single keys: another
	// limit, an exemption or a ban. They hold in all instances that share the store, from the next
	// request on. Default: false.
	Overrides bool `json:"overrides,omitempty" default:"false"`

	// When a key that continues to send requests although it is refused is banned. Default: never.
	Ban *Ban `json:"ban,omitempty" syntax:"<duration> after <n> refusals in <duration> [up_to <duration>]" default:"=never"`

	// Whether headers tell clients about the zone: either `on` or `off`. `on` (the default) is for all that the handler
	// sends. With `off`, refusals do not name the zone or its numbers in their bodies either. Retry-After is always sent
	// with a refusal.
	Headers string `json:"headers,omitempty" words:"on|off" default:"on"`

	// The share of keys for which the limit is enforced, in percent from 0 to 100. For other keys the zone is a dry run: it
	// decides, counts and logs, but refuses nothing. All instances choose the same keys, and a key stays chosen when the
	// share grows. Default: 100.
	Enforce *float64 `json:"enforce,omitempty" range:"0..100" unit:"percent" syntax:"<percent>" default:"=100"`

	// For how long an instance may hold units of a busy key that the store has charged ahead, from 10ms to 10s, and at most a
	// tenth of the time in which the limit comes back. Then the instance decides most requests by itself, and still no more
	// pass than the limit allows. 0, in a Caddyfile only `lend`, is recommended. Not for concurrency or queues. Needs a store
	// that instances share. Default: each request asks.
	Lend *caddy.Duration `json:"lend,omitempty" range:"10ms..10s" zero:"auto" syntax:"[<duration>|auto]" default:"=off"`

	// What happens to requests of this zone while the store does not answer: one of `allow`, `deny`
	// or `local`. If a request meets zones with different values, one `deny` is enough to deny it, and
	// zones with `local` decide together. Default: the handler's on_store_error.
	OnStoreError string `json:"on_store_error,omitempty" words:"allow|deny|local" default:"=that of rate_limit"`
}

// The values of on_store_error.
const (
	AllowOnError = "allow"
	DenyOnError  = "deny"
	LocalOnError = "local"
)

// UnmarshalJSON implements [json.Unmarshaler].
func (z *Zone) UnmarshalJSON(text []byte) error { return option.JSON(text, z) }

// The values of missing_key, besides reject.
const (
	MissingShare = "share"
	MissingSkip  = "skip"
)

// KeyRules returns what overrules the limit for single keys; nil if nothing does.
func (z *Zone) KeyRules() *store.KeyRules {
	if !z.Overrides && z.Ban == nil {
		return nil
	}
	return &store.KeyRules{Overrides: z.Overrides, Ban: z.Ban.rule()}
}

// Limits returns the limits of the zone by the names of their plans, with what plans take from the zone's own limit, which has no
// name. A zone with plans has none of its own without events, and a plan may have none.
func (z *Zone) Limits() map[string]Limit {
	all := make(map[string]Limit)
	if z.Plan == nil || z.MaxEvents != nil {
		all[""] = z.Limit
	}
	if z.Plan != nil {
		for name, p := range z.Plan.Plans {
			if !p.Unlimited {
				all[name] = p.Over(&z.Limit)
			}
		}
	}
	return all
}

// HasLimit reports whether any of the limits of the zone is such a one.
func (z *Zone) HasLimit(is func(*Limit) bool) bool {
	for _, l := range z.Limits() {
		if is(&l) {
			return true
		}
	}
	return false
}

// Compile checks the zone but for its limits, fills in defaults, and makes of its options what requests need. Varies says
// whether its key has a placeholder, and normal is the normal form of names of plans.
func (z *Zone) Compile(varies bool, normal func(string) string) error {
	option.Fill(z)
	err := cmp.Or(placeholder.CheckOption("cost", z.Cost.From), z.Ban.check(), z.Plan.check(z.MaxEvents != nil, normal))
	if err != nil {
		return err
	}
	if z.Charge == nil {
		z.Charge = &allBooked
	} else if z.Charge != &allBooked { // the config of a zone that was made before may be used again
		own := *z.Charge // requests may read the other one
		z.Charge = &own
		if err := own.compile(); err != nil {
			return err
		}
	}
	return z.checkPairs(varies)
}

// checkPairs checks options that go together, or do not.
func (z *Zone) checkPairs(varies bool) error {
	slots := z.HasLimit(func(l *Limit) bool { return CountsSlots(l.Algorithm) })
	waits := z.HasLimit(func(l *Limit) bool { return l.Wait() > 0 && l.Mode != algorithms.ModeQueue })
	ofBody := strings.HasPrefix(z.Cost.From, placeholder.JSONPrefix) // which costs 1 at least
	free := z.Cost.Number == 0 && (z.Cost.From == "" || z.Cost.Fallback) && !ofBody
	for _, pair := range []struct {
		broken bool
		why    string
	}{
		{z.Ban != nil && waits, "ban and max_wait exclude each other, except in a queue: each retry of a waiting request would count as a refusal"},
		{z.Charge.Late() && slots, "charge has no meaning for concurrency: slots always come back"},
		{z.Charge.SaysCost() && free, "charge needs a cost of at least 1: a request with cost 0 is never refused, whatever earlier ones have cost"},
		{z.MissingKey.Word != MissingShare && !varies, fmt.Sprintf("missing_key %s needs a key with a placeholder, got key %q", z.MissingKey.Word, z.Key)},
	} {
		if pair.broken {
			return errors.New(pair.why)
		}
	}
	return nil
}

// EnforcedShare returns the share of keys for which the limit is enforced, in percent.
func (z *Zone) EnforcedShare() float64 {
	if z.Enforce == nil {
		return 100
	}
	return *z.Enforce
}
