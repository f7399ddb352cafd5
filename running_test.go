package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// newSite returns an address for a Caddy that runs in this process until the test ends.
func newSite(t *testing.T) (address string) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// runAt runs or reloads a config: a Caddyfile or JSON with one server, unchanged except for its
// address and its files.
func runAt(t *testing.T, address, text string) {
	t.Helper()
	config := []byte(text)
	if !json.Valid(config) {
		var err error
		if config, _, err = adapt(text); err != nil {
			t.Fatal(err)
		}
	}
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	servers := parsed["apps"].(map[string]any)["http"].(map[string]any)["servers"].(map[string]any)
	if len(servers) != 1 {
		t.Fatalf("%d servers", len(servers))
	}
	for _, server := range servers {
		server := server.(map[string]any)
		server["listen"] = []string{address}
		server["automatic_https"] = map[string]any{"disable": true}
	}
	parsed["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	parsed["storage"] = map[string]any{"module": "file_system", "root": t.TempDir()}
	parsed["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "discard"}}}}
	config, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
}
