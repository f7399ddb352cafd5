package logging

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Recorder keeps the warnings of a handler while it is loaded, so that they can be shown later. It
// may be used from several goroutines at once.
type Recorder struct {
	mu   sync.Mutex
	kept map[string][]string // by zone
}

const (
	// maxWarnings bounds what a recorder keeps of a zone.
	maxWarnings = 20

	// zoneField is the field of a line that names its zone.
	zoneField = "zone"
)

// Record returns a logger that also writes warnings to the recorder.
func (r *Recorder) Record(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewTee(core, &recorderCore{LevelEnabler: zapcore.WarnLevel, to: r})
	}))
}

// Warnings returns the warnings so far, by the zone that their field "zone" names. Those without one have the name "".
func (r *Recorder) Warnings() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.kept)
}

// recorderCore writes to a recorder.
type recorderCore struct {
	zapcore.LevelEnabler
	to   *Recorder
	with []zapcore.Field
}

// With implements [zapcore.Core].
func (c *recorderCore) With(fields []zapcore.Field) zapcore.Core {
	return &recorderCore{c.LevelEnabler, c.to, slices.Concat(c.with, fields)}
}

// Check implements [zapcore.Core].
func (c *recorderCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements [zapcore.Core].
func (c *recorderCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	var shown []string
	zone := ""
	for _, f := range slices.Concat(c.with, fields) {
		if f.Key == zoneField {
			zone = f.String
			continue
		}
		f.AddTo(values)
		shown = append(shown, fmt.Sprintf("%s %v", f.Key, values.Fields[f.Key]))
	}
	text := e.Message
	if shown != nil {
		text += " (" + strings.Join(shown, ", ") + ")"
	}
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	if c.to.kept == nil {
		c.to.kept = make(map[string][]string)
	}
	if len(c.to.kept[zone]) < maxWarnings {
		c.to.kept[zone] = append(c.to.kept[zone], text)
	}
	return nil
}

// Sync implements [zapcore.Core].
func (*recorderCore) Sync() error { return nil }
