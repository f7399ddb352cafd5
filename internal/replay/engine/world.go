package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// world decides with one limit in place of that in the config, or with the config as it is.
type world struct {
	try      *trial             // nil for the config as it is
	limiters []*limiter.Limiter // by handler
	store    *memorystore.Store
	ref      *pool.Ref

	renewing   bool  // an event to renew leases is planned
	renewUntil int64 // the last time when a lease is held
	kept       int   // keys in the store after the last sweep
	swept      int64
	since      int // requests since the last sweep
}

// openStore is the store of a world.
type openStore struct{ *memorystore.Store }

// Identity implements [store.Backend].
func (s openStore) Identity() (string, error) { return fmt.Sprintf("replay:%p", s.Store), nil }

// Open implements [store.Backend].
func (s openStore) Open() (store.Store, error) { return s.Store, nil }

// newWorld makes a world.
func (e *engine) newWorld(try *trial) (w *world, err error) {
	w = &world{try: try}
	if w.store, err = memorystore.New(memorystore.Options{MaxKeys: e.needs.maxKeys, Now: e.Micros}); err != nil {
		return nil, err
	}
	if w.ref, err = pool.AcquireOn(&e.Timeline, openStore{w.store}); err != nil {
		return nil, err
	}
	for nth, h := range e.config.Handlers {
		zones := make([]*zone.Zone, len(h.Zones))
		for i, z := range h.Zones {
			if zones[i], err = e.inWorld(z, e.tallies.byHandler[nth][i], try); err != nil {
				_ = w.ref.Release()
				return nil, err
			}
		}
		w.limiters = append(w.limiters, limiter.New(limiter.Config{Zones: zones, Store: w.ref, Logger: zap.NewNop(), Clock: &e.Timeline}))
	}
	return w, nil
}

// inWorld returns a zone with counters of its own, as it is in a world.
func (e *engine) inWorld(z *zone.Zone, tally *zoneTally, try *trial) (made *zone.Zone, err error) {
	if made, err = z.Copy(); err != nil {
		return nil, err
	}
	made.Matchers = e.guarded(made.Matchers, tally)
	if try != nil && try.Zone == z.Name {
		return made.With(try.Plan, try.limit)
	}
	if made, err = made.Copy(); err == nil && try == nil {
		tally.stats = append(tally.stats, made.Stats)
	}
	return made, err
}

// guarded adds the guard of a zone to its matchers, if it needs one.
func (e *engine) guarded(sets caddyhttp.MatcherSets, z *zoneTally) (guarded caddyhttp.MatcherSets) {
	if z.guard == nil {
		z.guard = &guard{zoneTally: z, engine: e}
		for _, u := range e.needs.uses {
			if u.zone == z.Name && u.decides() {
				z.guard.uses = append(z.guard.uses, u)
			}
		}
	}
	if len(z.guard.uses) == 0 {
		return sets
	}
	if len(sets) == 0 {
		return caddyhttp.MatcherSets{{z.guard}}
	}
	// It comes last, unless the others say what they say because of what the log lacks.
	first := slices.ContainsFunc(z.guard.uses, func(u use) bool { return u.option == "match" && !u.ofBody() })
	for _, set := range sets {
		if set = append(slices.Clone(set), z.guard); first {
			set = append(caddyhttp.MatcherSet{z.guard}, set...)
		}
		guarded = append(guarded, set)
	}
	return guarded
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

// trial is a limit that is tried.
type trial struct {
	replay.Try
	limit   config.Limit
	refused map[string]int64 // requests, by key
	curve   bool             // it is tried for the curve of the page alone
}

// count counts a request of a key that the limit refuses.
func (t *trial) count(key string) {
	if t.refused == nil {
		t.refused = make(map[string]int64)
	}
	if t.refused[key] == 0 {
		key = strings.Clone(key)
	}
	t.refused[key]++
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
	per, _ := window(l)
	return l.MaxEvents.String() + per
}

// window returns the window of a limit as the config writes it, as "/1m", and its length in seconds. Slots have none.
func window(l *config.Limit) (per string, seconds float64) {
	if config.CountsSlots(l.Algorithm) {
		return "", 0
	}
	return "/" + l.Window.Format(), l.Window.Length().Seconds()
}
