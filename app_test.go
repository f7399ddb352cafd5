package caddyratelimit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestSettingsOfAConfigThatFails: Caddy starts apps in any order. If one does not start, the apps
// that have started are stopped, and the config before runs on as it was.
func TestSettingsOfAConfigThatFails(t *testing.T) {
	load := func(maxKeys int) caddy.App {
		ctx := caddytest.Config(t)
		caddytest.LoadInto(t, ctx, fmt.Sprintf(`{"store": {"backend": "memory", "max_keys": %d}, "rate_limits": {"settings": {"max_events": 1, "window": "1s"}}}`, maxKeys))
		app, err := ctx.App("rate_limit")
		if err != nil {
			t.Fatal(err)
		}
		return app.(caddy.App)
	}
	start := func(a caddy.App) {
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop := func(a caddy.App) {
		if err := a.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	running := load(5000)
	used, err := pool.Acquire(new(backend.MemoryStore))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = used.Release() }()
	memory := used.Store.Store.(*memorystore.Store)
	expect := func(when string, want int) {
		t.Helper()
		probe := new(memorystore.Settings)
		now := memory.Apply(probe)
		memory.Revert(probe, now)
		if now.MaxKeys != want {
			t.Fatalf("%s: max_keys is %d, want %d", when, now.MaxKeys, want)
		}
	}
	start(running)
	expect("running", 5000)

	failing := load(2000)
	expect("loading another", 5000)
	start(failing)
	stop(failing)
	expect("after it failed", 5000)

	next := load(3000)
	start(next)
	stop(running)
	expect("after a reload", 3000)
}

func TestTooManyZones(t *testing.T) {
	var zones []string
	for i := range 256 {
		zones = append(zones, fmt.Sprintf(`"zone %d": {"max_events": 1, "window": "1s"}`, i))
	}
	_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {`+strings.Join(zones, ",")+`}}`)
	if err == nil || !strings.Contains(err.Error(), "a rate_limit handler takes at most 255 zones, got 256") {
		t.Errorf("got %v", err)
	}
}
