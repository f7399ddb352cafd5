// Package caddyratelimit is an HTTP rate limiter for Caddy. It sorts requests into
// zones and decides all zones of a request together, all or nothing, in memory or in
// one call to a Redis that a fleet of Caddys shares.
package caddyratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler limits how many requests pass. Each request is sorted into the zones whose
// matchers match; each zone tells clients apart by a key and has a limit. All zones
// decide together: if one refuses, none is charged and the request ends with an HTTP
// error of status 429, which error routes can handle. `{http.rate_limit.exceeded.name}`
// then holds the zone's name.
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
	// lets them pass without rate limit headers; `deny` answers 503.
	OnStoreError string `json:"on_store_error,omitempty"`

	// The header fields that tell clients about their limits: `draft-10` (the default)
	// for RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10, or
	// `off`. Retry-After is always sent with a refusal.
	Headers []string `json:"headers,omitempty"`

	// The status of a refusal. Default: 429.
	Status int `json:"status,omitempty"`

	// How much is added to Retry-After at random, as a fraction of it, so that clients
	// do not come back all at once: 0.2 adds up to 20 %. Default: 0.
	Jitter float64 `json:"jitter,omitempty"`

	// How often the memory store drops expired keys; of several handlers, the shortest
	// counts. Default: 1m.
	SweepInterval caddy.Duration `json:"sweep_interval,omitempty"`

	// Whether log lines about refusals hold the key, which may be personal or secret.
	// Default: false.
	LogKey *bool `json:"log_key,omitempty"`

	// Not supported; loading fails with what to write instead.
	Distributed json.RawMessage `json:"distributed,omitempty"`

	// Not supported; loading fails with what to write instead.
	Storage json.RawMessage `json:"storage,omitempty"`

	logger *zap.Logger
	zones  []*Zone
	store  *lease
	answer answer
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
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	backend, err := h.backend(ctx)
	if err != nil {
		return err
	}
	if h.store, err = borrow(backend); err != nil {
		return err
	}
	if err := app.configure(backend, h.store.shared, h.SweepInterval); err != nil {
		return err
	}
	for name, z := range h.RateLimits {
		if z == nil {
			z = new(Zone)
		}
		if err := z.provision(ctx, name, h.store, h.logger); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		if err := app.define(z, h.store.id); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		h.zones = append(h.zones, z)
	}
	slices.SortFunc(h.zones, func(a, b *Zone) int { return strings.Compare(a.name, b.name) })
	h.answer = newAnswer(h)
	return nil
}

// check judges what can be judged alone, and fills in defaults. It comes first, so that
// nothing is opened for a config that cannot work.
func (h *Handler) check() error {
	const instead = "instances share one exact limit through Redis: write store redis { address <host:port> }"
	switch {
	case h.Distributed != nil:
		return errors.New("distributed is not supported: " + instead)
	case h.Storage != nil:
		return errors.New("storage is not supported: " + instead)
	case h.Jitter < 0:
		return fmt.Errorf("jitter must be at least zero, got %v", h.Jitter)
	case h.Jitter > 1:
		return fmt.Errorf("jitter must be at most 1, got %v", h.Jitter)
	case h.SweepInterval < 0:
		return fmt.Errorf("sweep_interval must be positive, got %v", h.SweepInterval)
	case h.Status != 0 && (h.Status < 400 || h.Status > 599):
		return fmt.Errorf("status must be from 400 to 599, got %d", h.Status)
	}
	if h.Status == 0 {
		h.Status = http.StatusTooManyRequests
	}
	if h.OnStoreError == "" {
		h.OnStoreError = allowOnError
	}
	if h.OnStoreError != allowOnError && h.OnStoreError != denyOnError {
		return fmt.Errorf("on_store_error must be allow or deny, got %q", h.OnStoreError)
	}
	if len(h.Headers) == 0 {
		h.Headers = []string{headersDraft10}
	}
	for _, style := range h.Headers {
		if style != headersDraft10 && style != headersOff {
			return fmt.Errorf("headers must be draft-10 or off, got %q", style)
		}
	}
	if len(h.Headers) > 1 {
		return fmt.Errorf("headers must be one of draft-10 and off, got %q", h.Headers)
	}
	return nil
}

// backend loads the store's module.
func (h *Handler) backend(ctx caddy.Context) (Backend, error) {
	if h.StoreRaw == nil {
		return new(MemoryStore), nil
	}
	module, err := ctx.LoadModule(h, "StoreRaw")
	if err != nil {
		return nil, fmt.Errorf("loading store: %w", err)
	}
	backend, ok := module.(Backend)
	if !ok {
		return nil, fmt.Errorf("store %T is no rate limit backend", module)
	}
	return backend, nil
}

// Cleanup implements [caddy.CleanerUpper]. It gives back exactly what Provision took,
// however far that got.
func (h *Handler) Cleanup() error {
	var errs []error
	for _, z := range h.RateLimits {
		if z != nil {
			z.release()
		}
	}
	if h.store != nil {
		errs = append(errs, h.store.giveBack())
	}
	return errors.Join(errs...)
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if done, err := h.decide(w, r); done || err != nil {
		return err
	}
	return next.ServeHTTP(w, r)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
