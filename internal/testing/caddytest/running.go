package caddytest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest/observer"

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
