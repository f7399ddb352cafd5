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

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// Adapt adapts a Caddyfile to JSON.
func Adapt(text string) ([]byte, []caddyconfig.Warning, error) {
	return caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
}

// ValidateJSON provisions a config, as "caddy validate" does, with secrets in the environment. It returns the text of the error,
// or ok and the warnings of the limiter, a line each. No store and no zone may be left open.
func ValidateJSON(t testing.TB, config []byte) string {
	t.Helper()
	t.Setenv("REDIS_ADDRESS", "redis.example.com:6379")
	t.Setenv("REDIS_PASSWORD", "s3cr3t-hunter2")
	t.Setenv("LIMITS_PASSWORD_HASH", "$2a$04$MhSbH1Jjm8rp5Ti2IIPMLeECXCg/XqwZleMXA4NAfJoYpnP/tz.FS")
	var c *caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(config), &c); err != nil {
		return "decoding config: " + err.Error()
	}
	log, logs := observed(t)
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": t.TempDir()}, nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: log}}}
	storesBefore, zonesBefore := pool.InUse()
	err := caddy.Validate(c)
	if stores, zones := pool.InUse(); stores != storesBefore || zones != zonesBefore {
		t.Errorf("%d stores and %d zones are left open", stores-storesBefore, zones-zonesBefore)
	}
	if err != nil {
		return err.Error()
	}
	text := "ok"
	for _, w := range logs.All() {
		if w.Level >= zapcore.WarnLevel && strings.HasPrefix(w.LoggerName, "http.handlers.rate_limit") {
			fields := w.ContextMap()
			text += fmt.Sprint("\n", w.Level, ": ", w.Message)
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				text += fmt.Sprintf(" %s=%v", name, fields[name])
			}
		}
	}
	return text
}
