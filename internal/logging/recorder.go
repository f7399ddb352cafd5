package logging

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Recorder keeps the warnings of a config while it is loaded, so that they can be shown later. It
// may be used from several goroutines at once.
type Recorder struct {
	mu       sync.Mutex
	warnings []string
}

// maxWarnings bounds what a recorder keeps.
const maxWarnings = 20

// Record returns a logger that also writes warnings to the recorder.
func (r *Recorder) Record(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewTee(core, &recorderCore{LevelEnabler: zapcore.WarnLevel, to: r})
	}))
}

// Warnings returns the warnings so far.
func (r *Recorder) Warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.warnings)
}

// recorderCore writes to a recorder.
type recorderCore struct {
	zapcore.LevelEnabler
	to *Recorder
}

// With implements [zapcore.Core]. Fields of a logger are the zone's name, which is known.
func (c *recorderCore) With([]zapcore.Field) zapcore.Core { return c }

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
	for _, f := range fields {
		if f.Key == "zone" {
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
	if len(c.to.warnings) < maxWarnings {
		c.to.warnings = append(c.to.warnings, text)
	}
	return nil
}

// Sync implements [zapcore.Core].
func (*recorderCore) Sync() error { return nil }
