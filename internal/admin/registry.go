package admin

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Handler is a rate limit handler of a config.
type Handler struct {
	Zones []*zone.Zone
	Store *pool.Ref
	Local *pool.Ref // decides while the store does not; nil if no zone may need it

	LogKey bool // log lines show keys
}

// Config has the provisioned handlers of one config.
type Config struct {
	mu       sync.Mutex
	handlers []Handler
}

// Add adds a handler that was provisioned.
func (c *Config) Add(h Handler) {
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
}

// Register adds a config that begins to run.
func (c *Config) Register() {
	registry.Lock()
	defer registry.Unlock()
	registry.configs = append(registry.configs, c)
}

// Unregister removes a config that has ended, or that failed to start.
func (c *Config) Unregister() {
	registry.Lock()
	defer registry.Unlock()
	registry.configs = slices.DeleteFunc(registry.configs, func(other *Config) bool { return other == c })
}

// runningHandlers returns the handlers of the newest config that runs.
func runningHandlers() []Handler {
	registry.Lock()
	defer registry.Unlock()
	if len(registry.configs) == 0 {
		return nil
	}
	return registry.configs[len(registry.configs)-1].handlers
}

// runningZone is a zone of the newest config.
type runningZone struct {
	*zone.Zone // of any handler: all define the zone alike
	store      *pool.Ref
	local      *pool.Ref    // decides while the store does not; nil if no zone may need it
	uses       []*zone.Zone // by handler
	logKey     bool         // of some handler
}

// runningZones returns the zones of the newest config that runs, sorted by name.
func runningZones() (zones []*runningZone) {
	byName := make(map[string]*runningZone)
	for _, h := range runningHandlers() {
		for _, z := range h.Zones {
			known := byName[z.Name]
			if known == nil {
				known = &runningZone{Zone: z, store: h.Store}
				byName[z.Name] = known
				zones = append(zones, known)
			}
			known.uses = append(known.uses, z)
			known.logKey = known.logKey || h.LogKey
			if h.Local != nil {
				known.local = h.Local
			}
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int { return strings.Compare(a.Name, b.Name) })
	return zones
}
