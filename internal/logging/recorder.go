package logging

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const (
	// maxWarnings bounds the warnings of a zone.
	maxWarnings = 20

	// zoneField is the field of a line that names its zone.
	zoneField = "zone"
)

// Record returns a logger for a handler while it is loaded, whose warnings can be shown later: warnings returns those so far, by
// the zone that their field "zone" names. Those without one have the name "".
func Record(logger *zap.Logger) (recorded *zap.Logger, warnings func() map[string][]string) {
	kept, lines := observer.New(zapcore.WarnLevel)
	recorded = logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return zapcore.NewTee(core, kept) }))
	return recorded, func() map[string][]string {
		all := make(map[string][]string)
		for _, line := range lines.All() {
			zone, text := textOf(&line)
			if len(all[zone]) < maxWarnings {
				all[zone] = append(all[zone], text)
			}
		}
		return all
	}
}

// textOf returns the zone of a line, and the line with its other fields.
func textOf(line *observer.LoggedEntry) (zone, text string) {
	var shown []string
	values := line.ContextMap()
	for _, f := range line.Context {
		if f.Key == zoneField {
			zone = f.String
		} else {
			shown = append(shown, fmt.Sprintf("%s %v", f.Key, values[f.Key]))
		}
	}
	if shown == nil {
		return zone, line.Message
	}
	return zone, line.Message + " (" + strings.Join(shown, ", ") + ")"
}
