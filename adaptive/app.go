package adaptive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

func init() { caddy.RegisterModule(new(App)) }

const appName = "adaptive_concurrency"

// App is what the handlers of one config have in common. They load it.
type App struct {
	mu       sync.Mutex
	handlers map[string]*Handler // one of each name
}

// limit is what all handlers of a name share.
type limit struct {
	gate    *gate.Gate
	waits   [maxClasses]stats.Histogram
	refused [maxClasses]atomic.Uint64

	mu      sync.Mutex
	running []*Handler // of each config that runs, the newest last
}

// limits has the limits of all configs, by name.
var limits = caddy.NewUsagePool()

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appName, New: func() caddy.Module { return new(App) }}
}

// Provision implements [caddy.Provisioner].
func (a *App) Provision(ctx caddy.Context) error {
	a.handlers = make(map[string]*Handler)
	if err := ctx.GetMetricsRegistry().Register(a); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// add gives a handler its limit.
func (a *App) add(h *Handler) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.handlers[h.Name]; before == nil {
		a.handlers[h.Name] = h
	} else if !bytes.Equal(before.definition(), h.definition()) {
		return fmt.Errorf("adaptive_concurrency %s has other options elsewhere: handlers of a name share a limit; use another name", h.Name)
	}
	made := &limit{gate: gate.New(h.options())}
	shared, _ := limits.LoadOrStore(h.Name, made)
	h.limit = shared.(*limit)
	return nil
}

// definition is the JSON of the options.
func (h *Handler) definition() []byte {
	text, _ := json.Marshal(h)
	return text
}

// Start implements [caddy.App]. Only now it is known that the config is valid, so only now the limits get its options.
func (a *App) Start() error {
	for _, h := range a.handlers {
		h.limit.change(h, true)
	}
	return nil
}

// Stop implements [caddy.App]. If the config never ran, because another app did not start, the limits get the options of the
// running config back.
func (a *App) Stop() error {
	for _, h := range a.handlers {
		h.limit.change(h, false)
	}
	return nil
}

// change makes a handler run, or not any more. The limit has the options of the newest one that runs.
func (l *limit) change(h *Handler, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = slices.DeleteFunc(l.running, func(other *Handler) bool { return other == h })
	if runs {
		l.running = append(l.running, h)
	}
	if n := len(l.running); n > 0 {
		l.gate.Configure(l.running[n-1].options())
	}
}

// Interface guards
var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
