package running

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
)

// LogChange logs what has changed.
func LogChange(action, what string, more ...zap.Field) {
	fields := []zap.Field{zap.String("action", action)}
	if what != "" {
		fields = append(fields, zap.String("what", what))
	}
	logging.Logger().Named("changes").Info("limits changed", append(fields, more...)...)
}

// logReload logs what a config that begins to run instead of another one changes.
func (c *Config) logReload(before *Config) {
	if all := compare.Zones(before.All(), c.All()); all != nil { // else nothing that concerns limits
		LogChange("reload", summary(all))
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
