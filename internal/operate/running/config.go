// Package running has the configs that run: their zones and stores, what these count, what is told about that to metrics and
// other instances, and what is logged when one config replaces another.
package running

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Config has the provisioned handlers of one config.
type Config struct {
	mu       sync.Mutex
	handlers []*trial.Handler
	before   map[string]counted // of each zone
}

// counted is what a zone had counted when a config began to run.
type counted struct {
	requests uint64
	costs    [stats.CostResults]uint64
}

// Add adds a handler that was provisioned.
func (c *Config) Add(h *trial.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers = append(c.handlers, h)
}

// registry has the configs that run, the newest last. There are two while one replaces the other.
// Caddy makes the routes of the admin API before the apps of a config, and does not tell the routes
// when the config ends. So the routes look here with each request.
var registry struct {
	sync.Mutex
	configs []*Config
	started bool // a config with limits has run in this process
}

// All returns the handlers that were provisioned.
func (c *Config) All() []*trial.Handler {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.handlers)
}

// Register adds a config that begins to run.
func (c *Config) Register() {
	c.noteBefore()
	registry.Lock()
	before, reloads := newest(), registry.started
	registry.configs, registry.started = append(registry.configs, c), true
	registry.Unlock()
	if reloads {
		c.logReload(before)
	}
	report()
}

// noteBefore notes what the zones have counted.
func (c *Config) noteBefore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = make(map[string]counted)
	for _, h := range c.handlers {
		for _, z := range h.Zones {
			var n counted
			for _, of := range z.Stats.Totals() {
				n.requests += of
			}
			n.costs, _ = z.Stats.Costs.Read()
			c.before[z.Name] = n
		}
	}
}

// Unregister removes a config that has ended, or that failed to start.
func (c *Config) Unregister() {
	registry.Lock()
	ends := newest() == c
	registry.configs = slices.DeleteFunc(registry.configs, func(other *Config) bool { return other == c })
	left := newest()
	registry.Unlock()
	if ends && (left != &noConfig || !caddy.Exiting()) { // it failed to start, or the next config limits nothing
		left.logReload(c)
	}
	report()
}

// Handler returns the handler of a module in the routes of a config that runs, or nil.
func Handler(module caddyhttp.MiddlewareHandler) *trial.Handler {
	registry.Lock()
	defer registry.Unlock()
	for _, config := range registry.configs {
		if h := trial.Find(config.All(), module); h != nil {
			return h
		}
	}
	return nil
}

// noConfig is the config while none with limits runs.
var noConfig Config

// newest returns the newest config that runs. The registry must be locked.
func newest() *Config {
	if n := len(registry.configs); n > 0 {
		return registry.configs[n-1]
	}
	return &noConfig
}

// Current returns the newest config that runs.
func Current() *Config {
	registry.Lock()
	defer registry.Unlock()
	return newest()
}

// LogChange logs what has changed.
func LogChange(action, what string, more ...zap.Field) {
	fields := []zap.Field{zap.String("action", action)}
	if what != "" {
		fields = append(fields, zap.String("what", what))
	}
	logging.Logger().Named("changes").Info("limits changed", append(fields, more...)...)
}

// logReload logs what a config that begins to run instead of another one changes.
func (c *Config) logReload(before *Config) {
	if all := compare.Zones(before.All(), c.All()); all != nil { // else nothing that concerns limits
		LogChange("reload", summary(all))
	}
}

// summary says in a line what a reload has changed.
func summary(zones []adminapi.ZoneDiff) string {
	var parts []string
	for _, z := range zones {
		name := "zone " + z.Zone
		if z.Kind != adminapi.ZoneChanged {
			name += " is " + z.Kind
		}
		for _, text := range z.Changes {
			parts = append(parts, name+": "+text)
		}
	}
	const most = 10
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n-most))
	}
	return logging.Key(strings.Join(parts, "; "))
}
