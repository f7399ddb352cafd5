package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The actions of changes.
const (
	actionStart    = "start"
	actionReload   = "reload"
	actionOverride = "override"
	actionBan      = "ban"
	actionUnban    = "unban"
	actionClear    = "clear"
	actionReset    = "reset"
)

// journal has the last changes on this instance.
var journal struct {
	sync.Mutex
	changes []adminapi.Change
	n       int // that were ever made
}

// record keeps a change in this process, and logs it.
func record(c *adminapi.Change, logKey bool) {
	journal.Lock()
	journal.n++
	c.ID, c.At, c.Caddy = fmt.Sprintf("%s-%d", store.Process(), journal.n), time.Now().UTC().Truncate(time.Millisecond), processName()
	if len(journal.changes) == store.MaxJournal {
		journal.changes = slices.Delete(journal.changes, 0, 1)
	}
	kept := *c
	kept.Zones, kept.What = withinBounds(c)
	journal.changes = append(journal.changes, kept)
	journal.Unlock()
	if c.Action == actionStart {
		return // Caddy itself logs that it starts
	}
	fields := []zap.Field{zap.String("action", c.Action)}
	for _, f := range []struct{ name, value string }{{"by", c.By}, {"zone", c.Zone}, {"what", kept.What}, {"note", c.Note}} {
		if f.value != "" {
			fields = append(fields, zap.String(f.name, f.value))
		}
	}
	if c.Key != nil && logKey {
		fields = append(fields, zap.String("key", logging.Key(c.Key.Key)))
	}
	if kept.Zones != nil {
		fields = append(fields, zap.Any("zones", kept.Zones))
	}
	logging.Logger().Named("changes").Info("limits changed", fields...)
}

// maxKept bounds what is kept of the zones of a change, and of its text, each in bytes of JSON.
const maxKept = store.MaxJournalEntry / 4

// withinBounds returns the first zones of a change, and the beginning of its text, as far as they are kept.
func withinBounds(c *adminapi.Change) (zones []adminapi.ZoneDiff, what string) {
	size := 0
	for i := range c.Zones {
		text, err := json.Marshal(&c.Zones[i])
		if size += len(text); err != nil || size > maxKept {
			break
		}
		zones = c.Zones[:i+1]
	}
	what = c.What
	if text, err := json.Marshal(what); err != nil || len(text) > maxKept {
		what = strings.ToValidUTF8(what[:min(len(what), maxKept/6)], "") + "..." // JSON has at most six bytes for one
	}
	return slices.Clone(zones), what
}

// tell has a store keep a change for the other instances. That it does not is no error of what was changed.
func tell(ctx context.Context, s store.Store, c *adminapi.Change) {
	shared, ok := s.(store.Journal)
	if !ok {
		return
	}
	short := *c
	short.Zones, short.What = withinBounds(c)
	text, err := json.Marshal(short)
	if err == nil && len(text) <= store.MaxJournalEntry {
		err = shared.AddToJournal(ctx, string(text))
	}
	if err != nil {
		logging.Logger().Named("changes").Debug("the change is not in the store", zap.Error(err))
	}
}

// changed records what the call has changed of a key, in its zone's store, too.
func (c *adminCall) changed(ctx context.Context, s store.Store, action, key, what, note string) {
	text := keyText(c.zone.Template, key, len(key))
	change := &adminapi.Change{Action: action, By: whoAsks(c.request), Zone: c.zone.Name, Key: &text, What: what, Note: note}
	record(change, c.zone.logKey)
	tell(ctx, s, change)
}

// describeChange says in words what an override does.
func describeChange(rule *store.Rule, o *store.Override) string {
	text := o.Kind.String()
	if o.Kind == store.KindLimit {
		text = describeLimit(rule, o.Limit, true)
	}
	if o.For > 0 {
		text += " for " + duration.Format(o.For)
	}
	return text
}

// zonesOf returns the zones of a config.
func zonesOf(c *Config) map[string]compare.Zone {
	zones := make(map[string]compare.Zone)
	for _, z := range c.zones() {
		zones[z.Name] = compare.Zone{Uses: z.uses, Warnings: z.warnings}
	}
	return zones
}

// recordReload records that a config begins to run in place of another one, or as the first one. It tells the stores in
// the background, because they may not answer.
func (c *Config) recordReload(before *Config) {
	change := &adminapi.Change{Action: actionStart}
	switch zones := zonesOf(c); {
	case before == nil:
		change.What = fmt.Sprintf("%d zones", len(zones))
	default:
		change.Action = actionReload
		if change.Zones = compare.Zones(zonesOf(before), zones); change.Zones == nil {
			return // nothing that concerns limits
		}
		change.What = summary(change.Zones)
	}
	record(change, false)
	stores := make(map[string]*pool.Ref)
	of := c.All()
	if len(of) == 0 && before != nil {
		of = before.All() // nothing is limited any longer: instances that share the store should know
	}
	for _, h := range of {
		if h.Store.Store.Remote {
			stores[h.Store.ID] = h.Store
		}
	}
	for _, ref := range stores {
		go func() {
			_ = withStoreIn(context.Background(), ref, func(ctx context.Context, s store.Store) error {
				tell(ctx, s, change)
				return nil
			})
		}()
	}
}

// summary says in a line what a reload has changed.
func summary(zones []adminapi.ZoneDiff) string {
	var parts []string
	for _, z := range zones {
		switch z.Kind {
		case adminapi.ZoneNew:
			parts = append(parts, "zone "+z.Zone+" is new: "+z.Is)
		case adminapi.ZoneGone:
			parts = append(parts, "zone "+z.Zone+" is gone")
		default:
			for _, change := range z.Changes {
				parts = append(parts, "zone "+z.Zone+": "+change.Text)
			}
		}
	}
	const most = 10
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(parts, "; ")
}

// showChanges lists the last changes, of all instances that share a store.
func showChanges(c *adminCall) error {
	if err := c.checkParameters("n"); err != nil {
		return err
	}
	n, err := c.intParameter("n", 100, 1, store.MaxJournal)
	if err != nil {
		return err
	}
	return c.writeJSON(lastChanges(c.request.Context(), int(n)))
}

// lastChanges returns the last changes.
func lastChanges(ctx context.Context, n int) adminapi.Changes {
	journal.Lock()
	all := slices.Clone(journal.changes)
	journal.Unlock()
	var answer adminapi.Changes
	for _, s := range runningStores() {
		if !s.store.Store.Remote {
			continue
		}
		err := withStoreIn(ctx, s.store, func(ctx context.Context, of store.Store) error {
			shared, ok := of.(store.Journal)
			if !ok {
				return nil
			}
			lines, err := shared.ReadJournal(ctx, n)
			for _, line := range lines {
				var change adminapi.Change
				if json.Unmarshal([]byte(line), &change) == nil && change.ID != "" {
					all = append(all, change)
				}
			}
			return err
		})
		if err != nil {
			answer.Incomplete = fmt.Sprintf("%s does not answer (%v), so only changes on this instance are listed", storeName(s.store), err)
		}
	}
	answer.Changes = append([]adminapi.Change{}, adminapi.LastChanges(n, all)...)
	return answer
}
