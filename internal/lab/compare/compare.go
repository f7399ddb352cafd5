// Package compare says in words what differs between two configs: for the log of reloads, and for people who review a
// change.
package compare

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Zones returns the zones of handlers that differ, sorted by name.
func Zones(before, after []*trial.Handler) (all []adminapi.ZoneDiff) {
	old, changed := trial.Zones(before), trial.Zones(after)
	for _, name := range union(old, changed) {
		was, is := old[name], changed[name]
		d := adminapi.ZoneDiff{Zone: name}
		switch {
		case is == nil:
			d.Kind, d.Changes = adminapi.ZoneGone, []string{"was " + describe(was.Uses[0])}
		case was == nil:
			d.Kind, d.Changes, d.Warnings = adminapi.ZoneNew, []string{describe(is.Uses[0])}, is.Warnings
		default:
			d.Kind, d.Changes = adminapi.ZoneChanged, changes(was.Uses, is.Uses)
			d.Warnings = slices.DeleteFunc(is.Warnings, func(text string) bool { return slices.Contains(was.Warnings, text) })
			if len(d.Changes)+len(d.Warnings) == 0 {
				continue
			}
		}
		all = append(all, d)
	}
	return all
}

// describe returns the limit of a zone, how far it is enforced, and its key.
func describe(z *zone.Zone) string {
	text := z.Description
	if rollout := z.Rollout(); rollout != "" {
		text += " (" + rollout + ")"
	}
	if z.Key != "" {
		text += " by " + z.Template.Form()
	}
	return text
}

// changes returns the options of a zone that differ.
func changes(was, is []*zone.Zone) (all []string) {
	add := func(text string) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for i := range min(len(was), len(is)) {
		parts("", options(was[i]), options(is[i]), func(name string, was, is any) { add(option(name, was, is)) })
	}
	if a, b := len(was), len(is); a != b {
		add(fmt.Sprintf("is in %d handlers, was in %d", b, a))
	}
	if was[0].StoreID != is[0].StoreID { // an ID may have secrets
		add("another store, or other options of it, so counts may begin again from zero")
	}
	return all
}

// options returns the options of a zone, and on_store_error, which its handler may set.
func options(z *zone.Zone) object {
	all := make(object)
	_ = json.Unmarshal(z.JSON, &all) // cannot fail: it was made from a zone
	spell(all)
	all["on_store_error"] = z.OnStoreError
	if z.Key != "" {
		all["key"] = z.Template.Form()
	}
	return all
}

// Configs says what differs between two configs, neither of which runs, and for which clients of some logs. Without
// logs the options may be nil.
func Configs(before, after []byte, o *replay.Options) (*adminapi.Comparison, error) {
	var configs [2]*offline.Config
	for i, text := range [][]byte{before, after} {
		alone, err := offline.Provision(text)
		if err != nil {
			return nil, fmt.Errorf("%s config: %w", [...]string{"old", "new"}[i], err)
		}
		defer alone.Release()
		configs[i] = alone
	}
	old, changed := configs[0], configs[1]
	c := &adminapi.Comparison{Zones: append([]adminapi.ZoneDiff{}, Zones(old.Handlers, changed.Handlers)...)}
	var err error
	if c.Unjudged, err = around(before, after, c.Zones); err != nil {
		return nil, err
	}
	if o != nil && len(o.Logs) > 0 {
		c.Log, err = engine.Compare(old, changed, o)
	}
	return c, err
}
