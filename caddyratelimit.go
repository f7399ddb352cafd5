// Package caddyratelimit is an HTTP rate limiter for Caddy. It sorts requests into
// zones and decides all zones of a request together, all or nothing, in memory or in
// one call to a Redis that a fleet of Caddys shares.
package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/limit"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	_ "github.com/seed-161337e5/caddyratelimit/internal/cli"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/report"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// registers "caddy rate-limit"

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler limits how many requests pass. Each request is sorted into the zones whose
// matchers match; each zone tells clients apart by a key and has a limit. All zones
// decide together: if one refuses, none is charged and the request ends with status 429,
// which error routes can handle. Placeholders such as `{http.rate_limit.zone}` and
// `{http.rate_limit.remaining}` tell what was decided.
//
// Answers carry the header fields Retry-After (when refused), RateLimit and
// RateLimit-Policy.
type Handler struct {
	// The zones by name. Names are global: handlers that name the same zone share its
	// counters and must define it alike.
	RateLimits map[string]*Zone `json:"rate_limits,omitempty"`

	// Where the counters are kept. Default: `memory`, which counts for this process
	// alone. With `redis` all instances that use the same Redis enforce one limit.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=http.rate_limit.stores inline_key=backend"`

	// What happens to requests while the store gives no answer. `allow` (the default)
	// lets them pass without rate limit headers; `deny` answers 503; `local` counts in the
	// memory of each Caddy, with limits divided by the number of Caddys. A zone may say
	// otherwise for itself. While a store answers and has no room for new keys, these are
	// decided as by `local` in any case.
	OnStoreError string `json:"on_store_error,omitempty"`

	// By how many Caddys `local` divides limits, from 1 to 100000. Default: as many as the
	// store has last seen alive.
	Instances *int `json:"instances,omitempty"`

	// The header fields that tell clients about their limits, several styles if need be:
	// `draft-10` (the default) for RateLimit and RateLimit-Policy of
	// draft-ietf-httpapi-ratelimit-headers-10; `x-ratelimit` for X-RateLimit-Limit,
	// X-RateLimit-Remaining, X-RateLimit-Reset (seconds from now) and, on a refusal,
	// X-RateLimit-Retry-After; `spring` for those of Spring Cloud Gateway; or `off`. Fields of these
	// names from an upstream are replaced. Retry-After is always sent with a refusal.
	Headers []string `json:"headers,omitempty"`

	// Other names for these fields, by the names they have: `{"X-RateLimit-Limit":
	// "X-Quota"}`. Default: none.
	HeaderNames map[string]string `json:"header_names,omitempty"`

	// What a refusal says: `status` (the default) leaves the body to error routes, and
	// else empty; `problem` writes a JSON problem (RFC 9457) that names the zones whose
	// limits refuse, and error routes do not run.
	OnLimit string `json:"on_limit,omitempty"`

	// The status of a refusal by a limit. Default: 429.
	Status int `json:"status,omitempty"`

	// How much is added to Retry-After at random, as a fraction of it, so that clients
	// do not come back all at once: 0.2 adds up to 20 %. Default: 0.
	Jitter *float64 `json:"jitter,omitempty"`

	// How often the memory store drops expired keys, at least 100ms; of several handlers,
	// the shortest counts. Default: 1m.
	SweepInterval caddy.Duration `json:"sweep_interval,omitempty"`

	// Which refusals are logged: `first` (the default) is one line for a key in a window
	// (or an hour, if that is less), for at most 50 keys a second of each kind, and one for each zone with
	// the number of those that were not logged;
	// `all` is a line each, at the rate of whoever is refused; `off` is none.
	Log string `json:"log,omitempty"`

	// Whether log lines and events about refusals hold the key, which may be personal or
	// secret. Default: false.
	LogKey *bool `json:"log_key,omitempty"`

	// Whether this handler's zones and store are left out of Caddy's metrics. Default:
	// false.
	DisableMetrics *bool `json:"disable_metrics,omitempty"`

	// Accepted for the sake of configs of github.com/mholt/caddy-ratelimit, without effect:
	// instances enforce one limit if they share a store. With a store of this process alone
	// it is logged that each counts on its own.
	Distributed *Distributed `json:"distributed,omitempty"`

	// Accepted like `distributed`, without effect.
	Storage json.RawMessage `json:"storage,omitempty"`

	logger  *zap.Logger
	zones   []*zone.Zone
	store   *pool.Ref
	local   *pool.Ref // stands in for the store; nil if no zone may need it
	limiter *limiter.Limiter
	report  *report.Reporter
	respond *respond.Responder
	unwatch func() // ends the watch for the store's state
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.rate_limit",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision implements [caddy.Provisioner].
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	if err := h.check(); err != nil {
		return err
	}
	fields, err := respond.NewFields(h.Headers, h.HeaderNames)
	if err != nil {
		return err
	}
	events, err := report.NewEvents(ctx)
	if err != nil {
		return err
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	backend, err := h.backend(ctx)
	if err != nil {
		return err
	}
	if h.store, err = pool.Acquire(backend); err != nil {
		return err
	}
	if err := app.configure(backend, h.store.Store, h.SweepInterval); err != nil {
		return err
	}
	h.warnOfDistributed()
	if len(h.RateLimits) == 0 {
		h.logger.Warn("no zones: this rate_limit limits nothing")
	}
	for _, name := range slices.Sorted(maps.Keys(h.RateLimits)) {
		z := h.RateLimits[name]
		if z == nil {
			z = new(Zone)
			h.RateLimits[name] = z
		}
		if err := z.provision(ctx, name, h.store, h.logger); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		z.live.OnStoreError = cmp.Or(z.OnStoreError, h.OnStoreError)
		if err := app.define(z.live, h.store); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		z.live.Index = len(h.zones)
		h.zones = append(h.zones, z.live)
	}
	if err := h.checkQueues(backend); err != nil {
		return err
	}
	if h.store.Store.Remote || slices.ContainsFunc(h.zones, func(z *zone.Zone) bool { return z.OnStoreError == zone.LocalOnError }) {
		if h.local, err = pool.Acquire(&pool.Local{StandsFor: h.store.ID}); err != nil {
			return err
		}
	}
	measure := h.DisableMetrics == nil || !*h.DisableMetrics
	h.limiter = limiter.New(limiter.Config{
		Zones: h.zones, Store: h.store, Local: h.local, Instances: value(h.Instances), Measure: measure, Logger: h.logger,
	})
	h.report = report.New(report.Config{
		Zones: h.zones, Log: h.Log, LogKey: value(h.LogKey), Events: events, Logger: h.logger,
	})
	h.respond = respond.New(ctx, respond.Config{
		Zones: h.zones, Fields: fields, Jitter: value(h.Jitter), Status: h.Status, Problem: h.OnLimit == onLimitProblem,
	})
	if app.first(h.store) {
		name := pool.Describe(h.store.Backend)
		h.unwatch = h.store.Store.Health.OnChange(func(cause error) { events.StoreState(name, h.OnStoreError, cause) })
	}
	if measure {
		app.metrics.Add(h.zones, h.store)
	}
	app.exposeConnections(ctx, h.zones)
	app.running.Add(admin.Handler{Zones: h.zones, Store: h.store, Local: h.local})
	return nil
}

// The values of the option on_limit.
const (
	onLimitStatus  = "status"
	onLimitProblem = "problem"
)

// maxInstances bounds the option, well above any fleet.
const maxInstances = 100_000

// minSweepInterval keeps the sweeper from doing nothing else.
const minSweepInterval = 100 * time.Millisecond

// maxZones is how many zones one request may meet in a handler: they are decided in one
// call.
const maxZones = store.MaxChecks

// value is the value of an option that may be unset.
func value[T any](option *T) (v T) {
	if option != nil {
		v = *option
	}
	return v
}

// given tells whether JSON says anything of an option.
func given(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

// check judges what can be judged alone, and fills in defaults. It comes first, so that
// nothing is opened for a config that cannot work.
func (h *Handler) check() error {
	switch {
	case len(h.RateLimits) > maxZones:
		return fmt.Errorf("a rate_limit handler takes at most %d zones, got %d", maxZones, len(h.RateLimits))
	case h.Jitter != nil && *h.Jitter < 0:
		return fmt.Errorf("jitter must be at least zero, got %v", *h.Jitter)
	case h.Jitter != nil && *h.Jitter > 1:
		return fmt.Errorf("jitter must be at most 1, got %v: a fraction, 0.2 for 20 %%", *h.Jitter)
	case h.Status != 0 && (h.Status < 400 || h.Status > 599):
		return fmt.Errorf("status must be from 400 to 599, got %d", h.Status)
	}
	if h.SweepInterval != 0 {
		if err := duration.CheckMin("sweep_interval", h.SweepInterval, minSweepInterval); err != nil {
			return err
		}
	}
	if h.Status == 0 {
		h.Status = http.StatusTooManyRequests
	}
	if h.OnStoreError == "" {
		h.OnStoreError = zone.AllowOnError
	}
	if err := checkOnStoreError(h.OnStoreError); err != nil {
		return err
	}
	if h.Instances != nil && (*h.Instances < 1 || *h.Instances > maxInstances) {
		return fmt.Errorf("instances must be from 1 to %d, got %d", maxInstances, *h.Instances)
	}
	if len(h.Headers) == 0 {
		h.Headers = []string{respond.HeadersDraft10}
	}
	return errors.Join(
		oneOf("on_limit", &h.OnLimit, onLimitStatus, onLimitProblem),
		oneOf("log", &h.Log, report.LogFirst, report.LogOff, report.LogAll),
	)
}

// oneOf judges a word. The first is the default.
func oneOf(option string, word *string, words ...string) error {
	if *word == "" {
		*word = words[0]
	}
	if !slices.Contains(words, *word) {
		return fmt.Errorf("%s must be %s or %s, got %q", option, strings.Join(words[:len(words)-1], ", "), words[len(words)-1], *word)
	}
	return nil
}

// checkOnStoreError judges the option, of the handler and of zones.
func checkOnStoreError(policy string) error {
	switch policy {
	case zone.AllowOnError, zone.DenyOnError, zone.LocalOnError:
		return nil
	}
	return fmt.Errorf("on_store_error must be allow, deny or local, got %q", policy)
}

// backend loads the store's module.
func (h *Handler) backend(ctx caddy.Context) (store.Backend, error) {
	if !given(h.StoreRaw) {
		return new(backend.MemoryStore), nil
	}
	var named struct {
		Backend string `json:"backend"`
	}
	if err := json.Unmarshal(h.StoreRaw, &named); err != nil || named.Backend == "" {
		return nil, fmt.Errorf(`store needs "backend": "%s"`, strings.Join(storeNames(), `" or "`))
	}
	module, err := ctx.LoadModule(h, "StoreRaw")
	if err != nil {
		return nil, fmt.Errorf("loading store: %w", err)
	}
	backend, ok := module.(store.Backend)
	if !ok {
		return nil, fmt.Errorf("store %T is no rate limit backend", module)
	}
	return backend, nil
}

// Cleanup implements [caddy.CleanerUpper]. It gives back exactly what Provision took,
// however far that got.
func (h *Handler) Cleanup() error {
	var errs []error
	if h.report != nil {
		h.report.Close()
	}
	if h.unwatch != nil {
		h.unwatch()
	}
	for _, z := range h.RateLimits {
		if z != nil {
			z.release()
		}
	}
	for _, l := range []*pool.Ref{h.store, h.local} {
		if l != nil {
			errs = append(errs, l.Release())
		}
	}
	return errors.Join(errs...)
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	verdict := h.limiter.Decide(r)
	h.report.Report(r, verdict)
	w, err := h.respond.Begin(w, r, verdict)
	completion := verdict.Release()
	if w == nil || err != nil {
		return err
	}
	return h.respond.Serve(completion, w, r, next)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)

// checkQueues refuses zones that would lose turns in a Cluster. Queues with different keys
// are on different nodes there, and one node charges after the other. If the last one
// refuses, the turn in the first cannot be given back once somebody stands behind it.
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
			return fmt.Errorf("zones %q and %q: two queues with different keys do not go together in mode cluster, "+
				"where a turn in the one is lost if the other refuses: give both one key, or write them in two rate_limit handlers",
				first.Name, z.Name)
		}
	}
	return nil
}
