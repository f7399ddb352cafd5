package caddytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// Adapt adapts a Caddyfile to JSON.
func Adapt(text string) ([]byte, []caddyconfig.Warning, error) {
	return caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
}

// ValidateJSON provisions a config, as "caddy validate" does. It returns the text of the error, or ok and the warnings of the
// limiter, a line each.
func ValidateJSON(t testing.TB, config []byte) string {
	t.Helper()
	warnings, err := validate(t, config)
	if err != nil {
		return err.Error()
	}
	lines := []string{"ok"}
	for _, w := range warnings {
		line, fields := fmt.Sprint(w.Level, ": ", w.Message), w.ContextMap()
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			line += fmt.Sprintf(" %s=%v", name, fields[name])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// validate provisions a config, with secrets in the environment. No store and no zone may be left
// open.
func validate(t testing.TB, config []byte) (warnings []observer.LoggedEntry, err error) {
	t.Helper()
	t.Setenv("REDIS_ADDRESS", "redis.example.com:6379")
	t.Setenv("REDIS_PASSWORD", "s3cr3t-hunter2")
	t.Setenv("LIMITS_PASSWORD_HASH", "$2a$04$MhSbH1Jjm8rp5Ti2IIPMLeECXCg/XqwZleMXA4NAfJoYpnP/tz.FS")
	var c *caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(config), &c); err != nil {
		return nil, fmt.Errorf("decoding config: %w", err)
	}
	log, logs := observed(t)
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": t.TempDir()}, nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: log}}}
	storesBefore, zonesBefore := pool.InUse()
	err = caddy.Validate(c)
	if stores, zones := pool.InUse(); stores != storesBefore || zones != zonesBefore {
		t.Errorf("%d stores and %d zones are left open", stores-storesBefore, zones-zonesBefore)
	}
	for _, entry := range logs.All() {
		if entry.Level >= zapcore.WarnLevel && strings.HasPrefix(entry.LoggerName, "http.handlers.rate_limit") {
			warnings = append(warnings, entry)
		}
	}
	return warnings, err
}
