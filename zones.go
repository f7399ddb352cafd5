package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// provisionZones makes the zones that requests meet.
func (h *Handler) provisionZones(ctx caddy.Context, app *App, fields *respond.Fields) error {
	for _, name := range slices.Sorted(maps.Keys(h.RateLimits)) {
		z, err := h.provisionZone(ctx, app, name)
		if err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		if cost := z.Charge.CostHeader(); fields.Sends(cost) {
			return fmt.Errorf("zone %q: charge: header: the handler sends %s itself: choose another name", name, cost)
		}
		h.zones = append(h.zones, z)
		if err := app.define(z, h.store); err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		h.warnAboutZone(ctx, z)
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
	at := zone.Place{Name: name, Index: len(h.zones), JSON: text, StoreID: h.store.ID, Salt: state.Salt, OnError: h.OnStoreError}
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
		return !z.Enforces() || !slices.ContainsFunc(z.Limits(), func(l *config.Limit) bool { return l.Mode == algorithms.ModeQueue })
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
