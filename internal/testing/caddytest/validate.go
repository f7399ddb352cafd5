package caddytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// ValidateJSON is [Validate] for JSON. It returns the text of the error, or ok and the lines of the
// warnings, with secrets in the environment. No store and no zone may be left open.
func ValidateJSON(t testing.TB, config []byte) string {
	t.Helper()
	t.Setenv("REDIS_ADDRESS", "redis.example.com:6379")
	t.Setenv("REDIS_PASSWORD", "s3cr3t-hunter2")
	var c *caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(config), &c); err != nil {
		return "decoding config: " + err.Error()
	}
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": t.TempDir()}, nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{
		WriterRaw: json.RawMessage(`{"output":"validate"}`), EncoderRaw: json.RawMessage(`{"format":"json"}`),
	}}}}
	validateLog.reset()
	storesBefore, zonesBefore := pool.InUse()
	err := caddy.Validate(c)
	if stores, zones := pool.InUse(); stores != storesBefore || zones != zonesBefore {
		t.Errorf("%d stores and %d zones are left open", stores-storesBefore, zones-zonesBefore)
	}
	if err != nil {
		return err.Error()
	}
	return strings.Join(append([]string{"ok"}, validateLog.warnings(t)...), "\n")
}

// validateLog is the log of the config that [ValidateJSON] loads.
var validateLog logWriter

func init() { caddy.RegisterModule(&validateLog) }

// logWriter is a log writer that keeps the text.
type logWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// CaddyModule implements [caddy.Module].
func (*logWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.validate", New: func() caddy.Module { return &validateLog }}
}

// String, WriterKey and OpenWriter implement [caddy.WriterOpener].
func (*logWriter) String() string                        { return "validate" }
func (*logWriter) WriterKey() string                     { return "validate" }
func (l *logWriter) OpenWriter() (io.WriteCloser, error) { return l, nil }

// Close implements [io.Closer].
func (*logWriter) Close() error { return nil }

// Write implements [io.Writer].
func (l *logWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logWriter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// warnings returns the limiter's lines above the level INFO.
func (l *logWriter) warnings(t testing.TB) (lines []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		fields := make(map[string]any)
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		level := fields["level"]
		if !strings.HasPrefix(fmt.Sprint(fields["logger"]), "http.handlers.rate_limit") || level == "debug" || level == "info" {
			continue
		}
		text := fmt.Sprintf("%v: %v", level, fields["msg"])
		for _, name := range []string{"level", "ts", "logger", "msg"} {
			delete(fields, name)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			text += fmt.Sprintf(" %s=%v", name, fields[name])
		}
		lines = append(lines, text)
	}
	return lines
}
