package adaptive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

func init() { caddy.RegisterModule(new(App)) }

const appName = "adaptive_concurrency"

// App is what the handlers of one config have in common. They load it.
type App struct {
	handlers map[string]*Handler // one of each name
}

// limit is what all handlers of a name share.
type limit struct {
	gate  *gate.Gate
	waits [gate.MaxClasses]stats.Histogram
}

// limits has the limits of all configs, by name.
var limits = caddy.NewUsagePool()

// running has the apps of the configs that run, the newest last.
var running struct {
	sync.Mutex
	apps []*App
}

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
	if before := a.handlers[h.Name]; before == nil {
		a.handlers[h.Name] = h
	} else if !bytes.Equal(before.definition(), h.definition()) {
		return fmt.Errorf("adaptive_concurrency %s has other options elsewhere: handlers of a name share a limit; use another name", h.Name)
	}
	shared, _ := limits.LoadOrStore(h.Name, &limit{gate: gate.New(h.options())})
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
	a.change(a)
	return nil
}

// Stop implements [caddy.App]. If the config never ran, because another app did not start, the limits get the options of the
// running config back.
func (a *App) Stop() error {
	a.change()
	return nil
}

// change makes the app run as the newest one, or not any more. Limits have the options of the newest app that has them.
func (a *App) change(newest ...*App) {
	running.Lock()
	defer running.Unlock()
	running.apps = append(slices.DeleteFunc(running.apps, func(other *App) bool { return other == a }), newest...)
	for _, app := range running.apps {
		for _, h := range app.handlers {
			h.limit.gate.Configure(h.options())
		}
	}
}

// Running returns the limits of the newest config that runs, sorted by name.
func Running() []adminapi.Adaptive {
	running.Lock()
	defer running.Unlock()
	all := []adminapi.Adaptive{}
	if n := len(running.apps); n > 0 {
		for _, h := range running.apps[n-1].handlers {
			s, _ := h.limit.gate.State()
			s.Name, s.Definition = h.Name, h.definition()
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b adminapi.Adaptive) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Interface guards
var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
