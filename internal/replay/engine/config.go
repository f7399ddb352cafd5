// Package engine sends the requests of logs through the routes of a config, and decides them on the
// time of the logs as Caddy would.
//
// One loop does in order what a Caddy does at the same time: requests begin, wait (in coroutines) and end.
// Limits that are tried have a store and zones of their own beside those of the config, a world. Worlds share
// the walk where no request can wait. A zone whose key, plan or matcher looks at what the log does not have
// of a request is left out of the decision.
package engine

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Handler is a rate limit handler of a config.
type Handler struct {
	Module caddyhttp.MiddlewareHandler
	Zones  []*zone.Zone
	Status int
	Final  func(*http.Request) bool // whether the refusal of a request never reaches error routes
}

// Config is a config that is provisioned and does not run.
type Config struct {
	JSON     []byte // as it was written, without changes for the replay
	App      *caddyhttp.App
	Handlers []Handler
	MaxKeys  int // of the memory store; 0 for the default
}

// zones returns the zones of the config by name. Zones of one name are alike, but for their matchers.
func (c *Config) zones() map[string]*zone.Zone {
	zones := make(map[string]*zone.Zone)
	for _, h := range c.Handlers {
		for _, z := range h.Zones {
			zones[z.Name] = z
		}
	}
	return zones
}

// world decides with one limit in place of that in the config, or with the config as it is.
type world struct {
	try      *trial             // nil for the config as it is
	limiters []*limiter.Limiter // by handler
	parts    map[partOf]*limiter.Limiter
	zones    [][]*zone.Zone // by handler
	store    *memorystore.Store
	ref      *pool.Ref

	renewing   bool  // an event to renew leases is planned
	renewUntil int64 // the last time when a lease is held
	kept       int   // keys in the store after the last sweep
	swept      int64
	since      int // requests since the last sweep
}

// trial is a limit that is tried.
type trial struct {
	replay.Try
	limit config.Limit
	tally refusals
	curve bool // it is tried for the curve of the page alone
}

// openStore is the store of a world.
type openStore struct{ *memorystore.Store }

// Identity implements [store.Backend].
func (s openStore) Identity() (string, error) { return fmt.Sprintf("replay:%p", s.Store), nil }

// Open implements [store.Backend].
func (s openStore) Open() (store.Store, error) { return s.Store, nil }

// newWorld makes a world on a timeline.
func newWorld(c *Config, t *clock.Timeline, try *trial) (*world, error) {
	w := &world{try: try}
	if try != nil {
		try.tally = make(refusals)
	}
	var err error
	if w.store, err = memorystore.New(memorystore.Options{MaxKeys: c.MaxKeys, Now: t.Micros}); err != nil {
		return nil, err
	}
	if w.ref, err = pool.AcquireOn(t, openStore{w.store}); err != nil {
		return nil, err
	}
	shared := make(map[string]*zone.Zone) // zones of one name count together
	for _, h := range c.Handlers {
		zones := make([]*zone.Zone, len(h.Zones))
		for i, z := range h.Zones {
			if zones[i], err = w.zone(z); err != nil {
				return nil, err
			}
			if first := shared[z.Name]; first != nil {
				zones[i].Stats = first.Stats
			} else {
				shared[z.Name] = zones[i]
			}
		}
		w.zones = append(w.zones, zones)
		w.limiters = append(w.limiters, limiter.New(limiter.Config{Zones: zones, Store: w.ref, Logger: zap.NewNop(), Clock: t}))
	}
	return w, nil
}

// zone returns a zone as it is in this world.
func (w *world) zone(z *zone.Zone) (*zone.Zone, error) {
	if w.try == nil || w.try.Zone != z.Name {
		return z.Copy()
	}
	return z.With(w.try.Plan, w.try.limit)
}

func (w *world) close() {
	if w.ref != nil {
		_ = w.ref.Release()
	}
}

// maintain does what the store does not do by itself on a clock of its own. It sweeps as often as the
// store of a Caddy does, but not before there is much to sweep: else the cost of a long log would be
// that of sweeping.
func (w *world) maintain(now int64) {
	const (
		every    = 4096
		interval = int64(memorystore.DefaultSweepInterval / 1000)
	)
	if w.since++; w.since%every != 0 || now-w.swept < interval || w.since < w.kept/2 {
		return
	}
	w.store.Sweep()
	w.kept, w.swept, w.since = w.store.Keys(), now, 0
}

// findTrial returns the zone of a limit that is to be tried, and separates its name from that of a plan. Both may have dots.
func findTrial(zones map[string]*zone.Zone, try *replay.Try) (*zone.Zone, error) {
	if z := zones[try.Zone]; z != nil {
		return z, nil
	}
	var found []replay.Try
	names := slices.Sorted(maps.Keys(zones))
	for _, name := range names {
		if plan, ok := strings.CutPrefix(try.Zone, name+"."); ok && zones[name].Plans[plan] != nil {
			found = append(found, replay.Try{Zone: name, Plan: plan, Rate: try.Rate})
		}
	}
	switch {
	case len(zones) == 0:
		return nil, errors.New("the config has no zones")
	case len(found) == 0:
		return nil, fmt.Errorf("no zone %q; the zones are %s", try.Zone, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("%q is plan %q of zone %q, and plan %q of zone %q; rename one of them",
			try.Zone, found[0].Plan, found[0].Zone, found[1].Plan, found[1].Zone)
	}
	*try = found[0]
	return zones[try.Zone], nil
}

// newTrial returns the limit that is to be tried.
func newTrial(zones map[string]*zone.Zone, try replay.Try) (*trial, error) {
	z, err := findTrial(zones, &try)
	if err != nil {
		return nil, err
	}
	l, err := z.LimitOf(try.Plan)
	if err != nil {
		return nil, err
	}
	if strings.Contains(strings.TrimSpace(try.Rate), " ") {
		wanted, err := config.ParseText(try.Rate)
		if err != nil {
			return nil, err
		}
		l = wanted.Over(&l)
	} else if config.CountsSlots(l.Algorithm) {
		slots, err := strconv.ParseInt(try.Rate, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("zone %q counts running requests, and has no window: write a number, such as 10, got %q", try.Zone, try.Rate)
		}
		l.MaxEvents = &config.Amount{Number: slots}
	} else {
		events, window, err := config.ParseRate(try.Rate)
		if err != nil {
			return nil, fmt.Errorf("rate %q: %w", try.Rate, err)
		}
		l.MaxEvents, l.Window = &config.Amount{Number: events}, window
	}
	if _, err := z.With(try.Plan, l); err != nil {
		return nil, fmt.Errorf("rate %q: %w", try.Rate, err)
	}
	return &trial{Try: try, limit: l}, nil
}

// window returns the length of the window in seconds.
func (t *trial) window() float64 {
	if config.CountsSlots(t.limit.Algorithm) {
		return 0
	}
	return t.limit.Window.Length().Seconds()
}

// label is the limit in the report.
func (t *trial) label() string {
	label := labelOf(&t.limit)
	if strings.Contains(t.Rate, " ") {
		label = t.Rate
	}
	if t.Plan != "" {
		return t.Plan + " " + label
	}
	return label
}

// labelOf returns the numbers of a limit, as "100/1m".
func labelOf(l *config.Limit) string {
	if l.MaxEvents == nil {
		return "plans"
	}
	if config.CountsSlots(l.Algorithm) {
		return l.MaxEvents.String()
	}
	return l.MaxEvents.String() + "/" + l.Window.Format()
}
