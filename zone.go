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

	// The time the events are for: from 1ms to 3660d, or with `fixed_window` also `day`,
	// `week` (from Monday) or `month`. Required, but for `concurrency`, which has none.
	Window Window `json:"window,omitzero"`

	// How to count: `sliding_window_log` (the default) is exact, `sliding_window_counter`
	// nearly so with two numbers a key, `token_bucket` (also `gcra`) lets events come back
	// evenly and takes a burst, `leaky_bucket` can make requests wait for their turn,
	// `fixed_window` is the cheapest, `concurrency` limits requests at the same time.
	Algorithm string `json:"algorithm,omitempty"`

	// How many events a bucket holds at once. Default: max_events.
	Burst int64 `json:"burst,omitempty"`

	// How a token bucket is refilled: `smooth` (the default), or `interval`: all of
	// max_events at once each window, counted from the first request.
	Refill string `json:"refill,omitempty"`

	// What a leaky bucket does: `meter` (the default) refuses what goes over the brim,
	// `queue` also makes requests leave evenly spaced, each waiting for its turn.
	Mode string `json:"mode,omitempty"`

	// When fixed windows start: `clock` (the default), at multiples of the window since
	// 1970, or `first_request`, with the first request after the last window.
	Align string `json:"align,omitempty"`

	// Where a `day`, `week` or `month` begins at midnight, such as `Europe/Paris`.
	// Default: UTC.
	Timezone string `json:"timezone,omitempty"`

	// How long a slot of `concurrency` stays taken if its Caddy dies, from 1s to 1h. A
	// Caddy that lives renews it in time, however long a request takes. Default: 30s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// How long a request may wait instead of being refused; it is held, and asked about
	// again when there should be room. In a queue it bounds the wait for the turn.
	// Default: 0, which is not at all, and in a queue without a bound.
	MaxWait caddy.Duration `json:"max_wait,omitempty"`

	// What happens to requests of this zone while the store gives no answer: `allow`,
	// `deny` or `local`. Default: what the handler says. If zones that one request meets
	// differ, one that denies is enough to deny, and those that are `local` decide together.
	OnStoreError string `json:"on_store_error,omitempty"`

	// What a request takes from the limit. Default: 1. With 0 it is counted by nothing
	// and only told how much is left.
	Cost *int64 `json:"cost,omitempty"`

	name         string
	matchers     caddyhttp.MatcherSets
	key          *keyTemplate
	cost         int64
	rule         *store.Rule
	onStoreError string // OnStoreError, or the handler's
	lends        bool   // the algorithm's charges are held until the request is over
	queues       bool   // the store tells each request how long to wait
	generation   string // key in the pool, once joined
	exceeded     error  // what a refusal ends the request with
	policy       string // item of RateLimit-Policy
	item         string // begin of the item of RateLimit
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
	z.lends = lends(algorithm)
	z.queues = z.Mode == algorithms.ModeQueue
	z.exceeded = fmt.Errorf("rate limit of zone %q exceeded", name)
	z.prepareHeaders()
	if quota := z.quota(); z.cost > quota && limit.Events > 0 {
		log.Warn("the cost is above what the limit can ever grant; every request of this zone is refused",
			zap.String("zone", name), zap.Int64("cost", z.cost), zap.Int64("limit", quota))
	}
	return nil
}

// limit reads the limit, and checks what has to do with no algorithm in particular.
func (z *Zone) limit() (l algorithms.Limit, err error) {
	switch {
	case z.MaxEvents == nil:
		return l, errors.New("max_events is missing: a zone needs max_events and a window")
	case *z.MaxEvents < 0:
		return l, fmt.Errorf("max_events must be at least zero, got %d", *z.MaxEvents)
	case z.OnStoreError != "" && checkOnStoreError(z.OnStoreError) != nil:
		return l, checkOnStoreError(z.OnStoreError)
	case z.MaxWait < 0 || time.Duration(z.MaxWait) > maxMaxWait:
		return l, fmt.Errorf("max_wait must be from 0 to %s, got %v", spell(maxMaxWait), time.Duration(z.MaxWait))
	}
	if !lends(z.Algorithm) {
		if err := z.Window.validate(); err != nil {
			return l, err
		}
	}
	z.cost = 1
	if z.Cost != nil {
		z.cost = *z.Cost
	}
	if z.cost < 0 || z.cost > algorithms.MaxEvents {
		return l, fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, z.cost)
	}
	l = algorithms.Limit{
		Events: *z.MaxEvents, Window: time.Duration(z.Window.Duration), Calendar: z.Window.Calendar,
		Burst: z.Burst, Refill: z.Refill, Mode: z.Mode, Align: z.Align,
		Lease: time.Duration(z.Lease), MaxWait: time.Duration(z.MaxWait),
	}
	if z.Timezone != "" {
		if l.Location, err = time.LoadLocation(z.Timezone); err != nil {
			return l, fmt.Errorf("timezone %q: %w; write a name such as Europe/Paris", z.Timezone, err)
		}
	}
	return l, nil
}

// lends tells of algorithms without a window: a request holds what it takes while it lives.
func lends(algorithm string) bool {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		return false
	}
	_, ok := a.(algorithms.Lender)
	return ok
}

// maxMaxWait bounds how long a request may be made to wait.
const maxMaxWait = time.Hour

// describeLimit says what the limit comes to: only what is not as it would be anyway.
func (z *Zone) describeLimit() string {
	l := z.rule.Limit()
	text := fmt.Sprintf("%s %d", z.rule.Algorithm().Name(), l.Events)
	if !z.lends {
		text += "/" + z.Window.spell()
	}
	for _, option := range []struct{ word, usual string }{
		{l.Refill, algorithms.RefillSmooth}, {l.Mode, algorithms.ModeMeter}, {l.Align, algorithms.AlignClock},
	} {
		if option.word != "" && option.word != option.usual {
			text += " " + option.word
		}
	}
	if l.Events > 0 && l.Burst > 0 && l.Burst != l.Events {
		text += fmt.Sprintf(" burst %d", l.Burst)
	}
	if l.Location != nil && l.Location != time.UTC {
		text += " in " + l.Location.String()
	}
	if l.Lease > 0 && l.Lease != algorithms.DefaultLease {
		text += " lease " + spell(l.Lease)
	}
	if z.queues && l.MaxWait > 0 {
		text += " max_wait " + spell(l.MaxWait)
	}
	return text
}

// quota is what a client may hold at once.
func (z *Zone) quota() int64 {
	if z.Burst > 0 && *z.MaxEvents > 0 {
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
