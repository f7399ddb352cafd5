package logging

import (
	"maps"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestRecorder: warnings are kept by zone, with their other fields and up to a bound, and everything is logged as
// before.
func TestRecorder(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	recorded, warnings := Record(zap.New(core))
	logger := recorded.With(zap.String("zone", "z"))
	logger.Info("no warning")
	logger.Warn("first", zap.String("zone", "z"))
	logger.Warn("second", zap.String("placeholder", "{x}"), zap.Int("cost", 5))
	recorded.Warn("of all")
	want := map[string][]string{"z": {"first", "second (placeholder {x}, cost 5)"}, "": {"of all"}}
	if got := warnings(); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
	for range 100 {
		logger.Warn("many")
	}
	if n := len(warnings()["z"]); n != maxWarnings || logs.Len() != 104 {
		t.Errorf("%d warnings kept, %d lines logged", n, logs.Len())
	}
}
