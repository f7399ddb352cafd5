package admin

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Handler is what the admin API knows of a rate limit handler.
type Handler struct {
	Zones []*zone.Zone
	Store *pool.Ref
	Local *pool.Ref // stands in for the store; nil if no zone may need it
}

// Config is the handlers of one config, once they are ready.
type Config struct {
	mu       sync.Mutex
	handlers []Handler
}

// Add notes a handler that is ready.
func (c *Config) Add(h Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers = append(c.handlers, h)
}

// running are the configs that run, the newest last. While one config takes over from
// another there are two. The routes of the admin API are made before the apps of their
// config, and are never told that it has ended; so they look here when a request comes.
var running struct {
	sync.Mutex
	configs []*Config
}

// Register is for a config that begins to run.
func (c *Config) Register() {
	running.Lock()
	defer running.Unlock()
	running.configs = append(running.configs, c)
}

// Unregister is for a config that runs no more, or that did not come to run.
func (c *Config) Unregister() {
	running.Lock()
	defer running.Unlock()
	running.configs = slices.DeleteFunc(running.configs, func(other *Config) bool { return other == c })
}

// runningHandlers are the handlers of the newest config that runs.
func runningHandlers() []Handler {
	running.Lock()
	defer running.Unlock()
	if len(running.configs) == 0 {
		return nil
	}
	return running.configs[len(running.configs)-1].handlers
}

// runningZone is a zone with all its uses.
type runningZone struct {
	*zone.Zone              // any of them: they are defined alike
	kept       *pool.Ref    // the store
	local      *pool.Ref    // what stands in for it; nil if nothing does
	uses       []*zone.Zone // by handler
}

// runningZones are the zones of the newest config that runs, by name.
func runningZones() (zones []*runningZone) {
	byName := make(map[string]*runningZone)
	for _, h := range runningHandlers() {
		for _, z := range h.Zones {
			known := byName[z.Name]
			if known == nil {
				known = &runningZone{Zone: z, kept: h.Store}
				byName[z.Name] = known
				zones = append(zones, known)
			}
			known.uses = append(known.uses, z)
			if h.Local != nil {
				known.local = h.Local
			}
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int { return strings.Compare(a.Name, b.Name) })
	return zones
}
