package admin

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The actions of changes.
const (
	actionReload   = "reload"
	actionOverride = "override"
	actionBan      = "ban"
	actionUnban    = "unban"
	actionClear    = "clear"
	actionReset    = "reset"
)

// logChange logs what has changed.
func logChange(action, what string, more ...zap.Field) {
	fields := []zap.Field{zap.String("action", action)}
	if what != "" {
		fields = append(fields, zap.String("what", what))
	}
	logging.Logger().Named("changes").Info("limits changed", append(fields, more...)...)
}

// maxLogged bounds what is logged of the zones of a change, and of its text, each in bytes of JSON.
const maxLogged = 4 << 10

// withinBounds returns the first zones of a change, and the beginning of its text, as far as they are logged.
func withinBounds(all []adminapi.ZoneDiff, text string) (zones []adminapi.ZoneDiff, what string) {
	size := 0
	for i := range all {
		text, err := json.Marshal(&all[i])
		if size += len(text); err != nil || size > maxLogged {
			break
		}
		zones = all[:i+1]
	}
	if quoted, err := json.Marshal(text); err == nil && len(quoted) <= maxLogged {
		return zones, text
	}
	return zones, strings.ToValidUTF8(text[:min(len(text), maxLogged/6)], "") + "..." // JSON has at most six bytes for one
}

// changed logs what the call has changed of a key.
func (c *adminCall) changed(action, key, what, note string) {
	fields := []zap.Field{zap.String("by", whoAsks(c.request)), zap.String("zone", c.zone.Name)}
	if note != "" {
		fields = append(fields, zap.String("note", note))
	}
	if c.zone.logKey {
		fields = append(fields, zap.String("key", logging.Key(keyText(c.zone.Template, key, len(key)).Key)))
	}
	logChange(action, what, fields...)
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

// logReload logs what a config that begins to run in place of another one changes.
func (c *Config) logReload(before *Config) {
	all := compare.Zones(compare.ZonesOf(before.Trials()), compare.ZonesOf(c.Trials()))
	if all == nil {
		return // nothing that concerns limits
	}
	zones, what := withinBounds(all, summary(all))
	fields := []zap.Field{}
	if zones != nil {
		fields = append(fields, zap.Any("zones", zones))
	}
	logChange(actionReload, what, fields...)
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
