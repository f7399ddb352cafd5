package admin

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// logChange logs what has changed.
func logChange(action, what string, more ...zap.Field) {
	fields := []zap.Field{zap.String("action", action)}
	if what != "" {
		fields = append(fields, zap.String("what", what))
	}
	logging.Logger().Named("changes").Info("limits changed", append(fields, more...)...)
}

// changed logs what the call has changed of a key.
func (c *adminCall) changed(action, key, what, note string) {
	fields := []zap.Field{zap.String("by", whoAsks(c.request)), zap.String("zone", c.zone.Name)}
	if note != "" {
		fields = append(fields, zap.String("note", note))
	}
	if c.zone.LogKey {
		fields = append(fields, zap.String("key", logging.Key(peek.KeyText(c.zone.Template, key, len(key)).Key)))
	}
	logChange(action, what, fields...)
}

// whoAsks says who sends a request to the admin API, by its address. On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}

// describeChange says in words what an override does.
func describeChange(rule *store.Rule, o *store.Override) string {
	text := o.Kind.String()
	if o.Kind == store.KindLimit {
		text = peek.DescribeLimit(rule, o.Limit, true)
	}
	if o.For > 0 {
		text += " for " + duration.Format(o.For)
	}
	return text
}

// logReload logs what a config that begins to run instead of another one changes.
func (c *Config) logReload(before *Config) {
	if all := compare.Zones(before.All(), c.All()); all != nil { // else nothing that concerns limits
		logChange("reload", summary(all))
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
