package caddytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// FreeAddress returns a loopback address for a Caddy that runs in this process until the test ends.
func FreeAddress(t testing.TB) (address string) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// RunConfig runs a config with one server, a Caddyfile or JSON, instead of the one that runs. It
// replaces the server's address, and switches off what would change files of this user. It returns what is logged.
func RunConfig(t testing.TB, address, text string) *observer.ObservedLogs {
	t.Helper()
	config := []byte(text)
	if !json.Valid(config) {
		var err error
		if config, _, err = Adapt(text); err != nil {
			t.Fatal(err)
		}
	}
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	apps := parsed["apps"].(map[string]any)
	servers := apps["http"].(map[string]any)["servers"].(map[string]any)
	if len(servers) != 1 {
		t.Fatalf("the config has %d servers, want 1", len(servers))
	}
	for _, server := range servers {
		server := server.(map[string]any)
		server["listen"] = []string{address}
		server["automatic_https"] = map[string]any{"disable": true}
	}
	parsed["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	// Caddy cleans its storage in the background, and no test waits for that.
	apps["tls"] = map[string]any{"disable_storage_clean": true, "disable_storage_check": true}
	parsed["storage"] = map[string]any{"module": "file_system", "root": t.TempDir()}
	log, logs := observed(t)
	parsed["logging"] = map[string]any{"logs": map[string]any{"default": log}}
	config, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	return logs
}

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

// Run starts the limiter's app of a config until the test ends, so that the admin API shows
// its handlers, which must have been loaded.
func Run(t testing.TB, ctx caddy.Context) {
	t.Helper()
	limiter := app[caddy.App](t, ctx, "rate_limit")
	if err := limiter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := limiter.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Admin sends a request to the limiter's admin API, about the config that runs. The path
// starts after /rate_limit/. An answer that is an error ends the test.
func Admin(t testing.TB, method, path, body string) string {
	t.Helper()
	status, answer := AdminStatus(t, method, path, body)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: status %d, %s", method, path, status, answer)
	}
	return answer
}

// AdminInto is [Admin] for a request that only reads. It decodes the answer, which is JSON.
func AdminInto(t testing.TB, path string, answer any) {
	t.Helper()
	if err := json.Unmarshal([]byte(Admin(t, http.MethodGet, path, "")), answer); err != nil {
		t.Fatal(err)
	}
}

// AdminStatus is [Admin] for answers that may be errors.
func AdminStatus(t testing.TB, method, path, body string) (status int, answer string) {
	t.Helper()
	module, err := caddy.GetModule("admin.api.rate_limit")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://localhost:2019/rate_limit/"+path, strings.NewReader(body))
	err = module.New().(caddy.AdminRouter).Routes()[0].Handler.ServeHTTP(w, r)
	if failed, ok := errors.AsType[caddy.APIError](err); ok {
		return failed.HTTPStatus, failed.Err.Error()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return w.Code, w.Body.String()
}
