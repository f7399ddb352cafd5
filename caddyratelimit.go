// Package caddyratelimit is an HTTP rate limiter for Caddy. It sorts requests into
// zones and decides all zones of a request together, all or nothing, in memory or in
// one call to a Redis that a fleet shares.
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

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	_ "github.com/seed-161337e5/caddyratelimit/adaptive" // the directive adaptive_concurrency
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/hangup"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	_ "github.com/seed-161337e5/caddyratelimit/internal/operate/cli" // registers "caddy rate-limit"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/report"
	"github.com/seed-161337e5/caddyratelimit/internal/request/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func init() { caddy.RegisterModule(Handler{}) }

// Handler limits the rate of requests. It sorts each request into the zones whose matchers
// match. A zone distinguishes clients by a key, and has a limit for each of them. All zones
// decide together: if one refuses the request, no zone is charged and the request ends with
// status 429, which error routes can handle.
//
// Responses have the headers RateLimit, RateLimit-Policy and, if the request is refused,
// Retry-After. Placeholders such as `{http.rate_limit.zone}` and `{http.rate_limit.remaining}`
// show what was decided.
type Handler struct {
	// The zones, by name. Names are global: handlers with a zone of the same name share its
	// counters, and must define its limit and key alike. At most 255 for each handler. Default: none,
	// so nothing is limited.
	RateLimits map[string]*config.Zone `json:"rate_limits,omitempty" caddyfile:"zone" syntax:"<name> { ... }" repeats:"true" default:"=none"`

	// Where counters are kept. `memory` (the default) counts in this process alone, so a fleet
	// of N instances admits N times the limit. With `redis`, all instances that use
	// the same Redis enforce one limit together. Other modules can add stores.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=http.rate_limit.stores inline_key=backend" syntax:"<name> { ... }" default:"=memory"`

	// What happens to requests while the store does not answer: one of `allow`, `deny` or `local`.
	// `allow` (the default) lets them pass without rate limit headers. `deny` answers with status
	// 503. `local` counts in the memory of each instance, with limits divided by the number of instances; so
	// does a store that is full, whatever this option says.
	OnStoreError string `json:"on_store_error,omitempty" words:"allow|deny|local" default:"allow"`

	// How many instances there are, for `local` to divide limits by, from 1 to 100000. Default: as many as
	// the store has last seen alive.
	Instances *int `json:"instances,omitempty" range:"1..100000" unit:"instances" default:"=as many as Redis has last seen"`

	// The styles of headers that tell clients about their limits: one or several of
	// `draft-11`, `draft-10`, `x-ratelimit`, `spring` or `off`. `draft-11` (the default) is for RateLimit and
	// RateLimit-Policy, which `draft-10` names too, `x-ratelimit` for X-RateLimit-Limit and others, `spring` for those of
	// Spring Cloud Gateway, and `off` for none. They replace headers of an upstream. Retry-After is always sent with a refusal.
	Headers []string `json:"headers,omitempty" words:"draft-11|draft-10|x-ratelimit|spring|off" syntax:"draft-11|draft-10|x-ratelimit|spring... | off" default:"draft-11"`

	// Other names for these headers, by the names that they have in their style:
	// `{"X-RateLimit-Limit": "X-Quota"}`. Default: none.
	HeaderName map[string]string `json:"header_name,omitempty" syntax:"<field> <name>" repeats:"true" default:"=none"`

	// The body of a refusal: either `status` or `problem`. With `status` (the default) error routes write it; without error
	// routes it is empty. With `problem` it is a JSON problem (RFC 9457) with the names of the
	// zones whose limits refuse, and error routes do not run. Callers of gRPC always get a status of gRPC.
	OnLimit string `json:"on_limit,omitempty" words:"status|problem" default:"status"`

	// The status of a refusal by a limit, from 400 to 599. Default: 429.
	Status int `json:"status,omitempty" range:"400..599" default:"429" syntax:"<code>"`

	// How much is added to Retry-After at random, as a fraction of it from 0 to 1, so that
	// clients do not come back all at once. 0.2 adds up to 20 %. Default: 0.
	Jitter *float64 `json:"jitter,omitempty" range:"0..1" default:"=0" syntax:"<fraction>"`

	// Which refusals are logged: one of `first`, `all` or `off`. `first` (the default) writes one
	// line for a zone and second, with the number of the others. `all` writes a line for each refusal, so an attack
	// fills the log.
	Log string `json:"log,omitempty" words:"first|all|off" default:"first"`

	// Whether log lines and events about refusals contain the key, which may be personal data or
	// a secret. Default: false.
	LogKey *bool `json:"log_key,omitempty" default:"=false"`

	// Whether this handler's zones and store are left out of Caddy's metrics. Default:
	// false.
	DisableMetrics *bool `json:"disable_metrics,omitempty" default:"=false"`

	// Has no effect, and is accepted so that configs of github.com/mholt/caddy-ratelimit load.
	// Instances enforce one limit if they share a store. If the store is not shared, a warning is
	// logged.
	Distributed json.RawMessage `json:"distributed,omitempty" syntax:"{ ... }"`

	// Has no effect either.
	Storage json.RawMessage `json:"storage,omitempty" syntax:"<name> [<value>...] { ... }"`

	// Has no effect either: expired keys are removed once a minute.
	SweepInterval caddy.Duration `json:"sweep_interval,omitempty"`

	logger   *zap.Logger
	warnings map[string][]string // by zone, from when it was loaded
	zones    []*zone.Zone
	store    *pool.Ref
	local    *pool.Ref // replaces the store while it does not answer; nil if no zone may need it
	limiter  *limiter.Limiter
	report   *report.Reporter
	respond  *respond.Responder
	counters []string // the keys of the zones' counters in the pool

	storeByDefault bool // the config names none
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.rate_limit",
		New: func() caddy.Module { return new(Handler) },
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (h *Handler) UnmarshalJSON(text []byte) error { return option.JSON(text, h) }

// Provision implements [caddy.Provisioner].
func (h *Handler) Provision(ctx caddy.Context) error {
	log := ctx.Logger()
	h.logger, h.warnings = log, make(map[string][]string)
	if len(h.RateLimits) > maxZones {
		return fmt.Errorf("a rate_limit handler takes at most %d zones, got %d", maxZones, len(h.RateLimits))
	}
	option.Fill(h)
	fields, err := respond.NewFields(h.Headers, h.HeaderName)
	if err != nil {
		return err
	}
	emitter, err := events.New(ctx)
	if err != nil {
		return err
	}
	common, err := ctx.App("rate_limit")
	if err != nil {
		return err
	}
	app := common.(*App)
	backend, err := h.backend(ctx)
	if err != nil {
		return err
	}
	if h.store, err = pool.Acquire(backend); err != nil {
		return err
	}
	if err := app.configure(backend, h.store.Store); err != nil {
		return err
	}
	if len(h.RateLimits) == 0 {
		h.warn("", "no zones: this rate_limit limits nothing; "+fillHandler.With().String())
	}
	if err := h.provisionZones(ctx, app, &fields); err != nil {
		return err
	}
	h.warnAboutStore()
	if err := h.checkQueues(backend); err != nil {
		return err
	}
	if h.store.Store.Remote || slices.ContainsFunc(h.zones, func(z *zone.Zone) bool { return z.OnStoreError == config.LocalOnError }) {
		if h.local, err = pool.Acquire(&pool.Local{StandsFor: h.store.ID}); err != nil {
			return err
		}
	}
	h.limiter = limiter.New(limiter.Config{
		Zones: h.zones, Store: h.store, Local: h.local, Instances: value(h.Instances),
		Measure: !value(h.DisableMetrics), Logger: log,
	})
	h.report = report.New(report.Config{
		Zones: h.zones, Log: h.Log, LogKey: value(h.LogKey), Events: emitter, Logger: log,
	})
	h.respond = respond.New(ctx, respond.Config{
		Zones: h.zones, Fields: fields, Jitter: value(h.Jitter), Status: h.Status, Problem: h.OnLimit == "problem",
		Around: app.server(ctx).routes,
	})
	h.join(ctx, app)
	return nil
}

// join makes what the handler has known to the app: metrics, and what the admin API shows.
func (h *Handler) join(ctx caddy.Context, app *App) {
	if slices.ContainsFunc(h.zones, (*zone.Zone).Waits) {
		hangup.Expose(ctx) // only the connection shows that the client of a waiting request leaves
	}
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	explained := h.respond.Config
	explained.Jitter = 0 // so that the same question has the same answer
	app.running.Add(&trial.Handler{
		Module: h, Zones: h.zones, Store: h.store, Local: h.local, Status: h.Status, Instances: value(h.Instances),
		Respond: respond.New(ctx, explained), Warnings: h.warnings,
		LogKey: value(h.LogKey), Server: server, StoreByDefault: h.storeByDefault,
		DisableMetrics: value(h.DisableMetrics),
	})
}

// maxZones bounds the zones of a handler, because one call of the store decides all of them.
const maxZones = store.MaxChecks

// value is the value of an option that may be unset.
func value[T any](option *T) (v T) {
	if option != nil {
		v = *option
	}
	return v
}

// backend loads the store's module.
func (h *Handler) backend(ctx caddy.Context) (store.Backend, error) {
	if h.StoreRaw == nil {
		h.storeByDefault = true
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
		return nil, fmt.Errorf("store %T is not a rate limit backend", module)
	}
	return backend, nil
}

// Cleanup implements [caddy.CleanerUpper]. It releases exactly what Provision has acquired, also
// if Provision has failed.
func (h *Handler) Cleanup() error {
	var errs []error
	if h.report != nil {
		h.report.Close()
	}
	for _, name := range h.counters {
		pool.ReleaseZone(name)
	}
	h.counters = nil
	for _, ref := range []*pool.Ref{h.store, h.local} {
		if ref != nil {
			errs = append(errs, ref.Release())
		}
	}
	return errors.Join(errs...)
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler]: decide, report, respond, next.
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

// provisionZones makes the zones that requests meet.
func (h *Handler) provisionZones(ctx caddy.Context, app *App, fields *respond.Fields) error {
	for _, name := range slices.Sorted(maps.Keys(h.RateLimits)) {
		z, err := h.provisionZone(ctx, app, name)
		if err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		if cost := z.Charge.CostHeader; fields.Sends(cost) {
			return fmt.Errorf("zone %q: charge: header: the handler sends %s itself: choose another name", name, cost)
		}
		h.zones = append(h.zones, z)
		if err := app.define(z, h.store); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		h.warnAboutZone(z)
	}
	return nil
}

// provisionZone makes a zone of its config, which stays as it was written.
func (h *Handler) provisionZone(ctx caddy.Context, app *App, name string) (*zone.Zone, error) {
	c := h.RateLimits[name]
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	counters := pool.ZoneKey(h.store.ID, name)
	state := pool.AcquireZone(counters)
	h.counters = append(h.counters, counters)
	at := zone.Place{Name: name, Index: len(h.zones), JSON: text, StoreID: h.store.ID, Salt: state.Salt, OnError: h.OnStoreError, Requests: app.server(ctx).requests}
	loaded := *c // loading clears the raw matchers
	err = cmp.Or(
		loadMatchers(ctx, &loaded, "MatcherSetsRaw", c.MatcherSetsRaw, &at.Matchers),
		loadMatchers(ctx, &loaded, "ExemptRaw", c.ExemptRaw, &at.Exempt),
		loadMatchers(ctx, &loaded, "BlockRaw", c.BlockRaw, &at.Block),
	)
	if err != nil {
		return nil, err
	}
	return zone.New(c, at, &state.Counters)
}

// loadMatchers loads the matchers in a field of a zone.
func loadMatchers(ctx caddy.Context, z *config.Zone, field string, raw caddyhttp.RawMatcherSets, to *caddyhttp.MatcherSets) error {
	if len(raw) == 0 {
		return nil
	}
	sets, err := ctx.LoadModule(z, field)
	if err != nil {
		return fmt.Errorf("loading matchers: %w", err)
	}
	return to.FromInterface(sets)
}

// checkQueues returns an error for zones that would lose turns in a Cluster. Queues with different
// keys are on different nodes there, and the nodes charge one after the other. If the last one
// refuses, the turn in the first one cannot be given back when another request is behind it.
func (h *Handler) checkQueues(backend store.Backend) error {
	if p, ok := backend.(store.Remote); !ok || !p.Partitioned() {
		return nil
	}
	queues := slices.DeleteFunc(slices.Clone(h.zones), func(z *zone.Zone) bool {
		return !z.Enforces() || !z.HasLimit(func(l *config.Limit) bool { return l.Mode == algorithms.ModeQueue })
	})
	for _, z := range queues {
		if first := queues[0]; first.Key != z.Key || first.Template.Prefixes != z.Template.Prefixes {
			return fmt.Errorf("zones %q and %q: two queues with different keys cannot be combined in mode cluster, "+
				"because a turn in one is lost if the other refuses: give both the same key, or put them in two rate_limit handlers",
				first.Name, z.Name)
		}
	}
	return nil
}
