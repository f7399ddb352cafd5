package caddyratelimit

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// running are the apps of the configs that run, the newest last. While one config takes
// over from another there are two. The routes of the admin API are made before the apps
// of their config, and are never told that it has ended; so they look here when a request
// comes.
var running struct {
	sync.Mutex
	apps []*App
}

// enlist is for a config that begins to run.
func (a *App) enlist() {
	running.Lock()
	defer running.Unlock()
	running.apps = append(running.apps, a)
}

// resign is for a config that runs no more, or that did not come to run.
func (a *App) resign() {
	running.Lock()
	defer running.Unlock()
	running.apps = slices.DeleteFunc(running.apps, func(other *App) bool { return other == a })
}

// runningHandlers are the handlers of the newest config that runs.
func runningHandlers() []*Handler {
	running.Lock()
	defer running.Unlock()
	if len(running.apps) == 0 {
		return nil
	}
	return running.apps[len(running.apps)-1].handlers
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
		for _, z := range h.zones {
			known := byName[z.Name]
			if known == nil {
				known = &runningZone{Zone: z, kept: h.store}
				byName[z.Name] = known
				zones = append(zones, known)
			}
			known.uses = append(known.uses, z)
			if h.local != nil {
				known.local = h.local
			}
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int { return strings.Compare(a.Name, b.Name) })
	return zones
}
