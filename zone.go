package caddyratelimit

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// defaultAlgorithm is what `events` and `window` mean when nothing else is said.
const defaultAlgorithm = "sliding_window_log"

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

	// How many requests a window has room for. 0 refuses all. Required.
	MaxEvents *int64 `json:"max_events,omitempty"`

	// The time the events are for, from 1ms to 3660d. Required.
	Window caddy.Duration `json:"window,omitempty"`

	// How to count: `sliding_window_log` (the default) is exact, `token_bucket` lets
	// events come back evenly and takes a burst, `fixed_window` is the cheapest.
	Algorithm string `json:"algorithm,omitempty"`

	// How many events a token bucket holds at once. Default: max_events.
	Burst int64 `json:"burst,omitempty"`

	// What a request takes from the limit. Default: 1. With 0 it is counted by nothing
	// and only told how much is left.
	Cost *int64 `json:"cost,omitempty"`

	name       string
	matchers   caddyhttp.MatcherSets
	key        *keyTemplate
	cost       int64
	rule       *store.Rule
	generation string // key in the pool, once joined
	exceeded   error  // what a refusal ends the request with
	policy     string // item of RateLimit-Policy
	item       string // begin of the item of RateLimit
}

func (z *Zone) provision(ctx caddy.Context, name string, kept *lease, log *zap.Logger) error {
	z.name = name
	if name == "" {
		return errors.New("a zone needs a name")
	}
	limit, err := z.limit()
	if err != nil {
		return err
	}
	algorithm := z.Algorithm
	if algorithm == "" {
		algorithm = defaultAlgorithm
	}
	counting, err := algorithms.Get(algorithm)
	if err != nil {
		return err
	}
	z.key, err = newKeyTemplate(z.Key, z.IPv4Prefix, z.IPv6Prefix)
	if err != nil {
		return err
	}
	if (z.IPv4Prefix != 0 || z.IPv6Prefix != 0) && !z.key.varies() {
		log.Warn("ipv4_prefix and ipv6_prefix have no effect: the key holds no placeholder", zap.String("zone", name))
	}
	for _, unknown := range z.key.unknown {
		log.Warn("the key holds a placeholder that is not Caddy's own; if nothing sets it, all clients share one limit",
			zap.String("zone", name), zap.String("placeholder", "{"+unknown+"}"))
	}
	if len(z.MatcherSetsRaw) > 0 {
		sets, err := ctx.LoadModule(z, "MatcherSetsRaw")
		if err != nil {
			return fmt.Errorf("loading matchers: %w", err)
		}
		if err := z.matchers.FromInterface(sets); err != nil {
			return err
		}
	}

	z.generation = generationKey(kept.id, name)
	z.rule, err = store.NewRule(name, counting, limit, joinGeneration(z.generation))
	if err != nil {
		return err
	}
	z.exceeded = fmt.Errorf("rate limit of zone %q exceeded", name)
	z.prepareHeaders()
	if quota := z.quota(); z.cost > quota && limit.Events > 0 {
		log.Warn("the cost is above what the limit can ever grant; every request of this zone is refused",
			zap.String("zone", name), zap.Int64("cost", z.cost), zap.Int64("limit", quota))
	}
	return nil
}

// limit checks what has to do with no algorithm in particular.
func (z *Zone) limit() (algorithms.Limit, error) {
	switch {
	case z.MaxEvents == nil:
		return algorithms.Limit{}, errors.New("max_events is missing: a zone needs max_events and a window")
	case *z.MaxEvents < 0:
		return algorithms.Limit{}, fmt.Errorf("max_events must be at least zero, got %d", *z.MaxEvents)
	case z.Window == 0:
		return algorithms.Limit{}, errors.New("window is missing: a zone needs max_events and a window")
	case z.Window < 0:
		return algorithms.Limit{}, fmt.Errorf("window must be greater than zero, got %v", time.Duration(z.Window))
	}
	if err := atLeast("window", z.Window, algorithms.MinWindow); err != nil {
		return algorithms.Limit{}, err
	}
	z.cost = 1
	if z.Cost != nil {
		z.cost = *z.Cost
	}
	if z.cost < 0 || z.cost > algorithms.MaxEvents {
		return algorithms.Limit{}, fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, z.cost)
	}
	return algorithms.Limit{Events: *z.MaxEvents, Window: time.Duration(z.Window), Burst: z.Burst}, nil
}

// describeLimit says what the limit comes to: a burst only where it is not what it would
// be anyway.
func (z *Zone) describeLimit() string {
	l := z.rule.Limit()
	text := fmt.Sprintf("%s %d/%s", z.rule.Algorithm().Name(), l.Events, spell(l.Window))
	if l.Events > 0 && l.Burst > 0 && l.Burst != l.Events {
		text += fmt.Sprintf(" burst %d", l.Burst)
	}
	return text
}

// quota is what a client may hold at once.
func (z *Zone) quota() int64 {
	if z.Burst > 0 {
		return z.Burst
	}
	return *z.MaxEvents
}

// release gives back what provision took.
func (z *Zone) release() {
	if z.generation != "" {
		leaveGeneration(z.generation)
		z.generation = ""
	}
}
