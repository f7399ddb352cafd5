package caddyratelimit_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestTooManyZones: a handler has at most 255 zones.
func TestTooManyZones(t *testing.T) {
	var zones []string
	for i := range 256 {
		zones = append(zones, fmt.Sprintf(`"zone %d": {"max_events": 1, "window": "1s"}`, i))
	}
	_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {`+strings.Join(zones, ",")+`}}`)
	if err == nil || !strings.Contains(err.Error(), "a rate_limit handler takes at most 255 zones, got 256") {
		t.Errorf("got %v, want an error about 256 zones", err)
	}
}

// TestEarlyData: before the TLS handshake is complete, an address may be forged, so neither it nor a part of it is a key.
func TestEarlyData(t *testing.T) {
	for key, want := range map[string]int{
		"{http.vars.client_ip}": 425, "{http.request.remote.host}": 425, "{http.request.remote.host/24,64}": 425, "{http.request.host}": 200,
	} {
		h := caddytest.Load(t, `{"rate_limits": {"early `+key[1:]+`": {"max_events": 3, "window": "1h", "key": "`+key+`"}}}`)
		r := caddytest.Request(httptest.NewRecorder(), "203.0.113.7:1")
		r.TLS = new(tls.ConnectionState)
		if got := caddytest.Status(h, r); got != want {
			t.Errorf("%s: status %d, want %d", key, got, want)
		}
	}
}

// TestSettingsOfFailedConfig: Caddy starts apps in any order. If one does not start, Caddy stops those
// that have started, and the config that ran before keeps its settings.
func TestSettingsOfFailedConfig(t *testing.T) {
	load := func(maxKeys int) caddy.App {
		ctx := caddytest.Config(t)
		caddytest.LoadInto(t, ctx, fmt.Sprintf(`{"store": {"backend": "memory", "max_keys": %d}, "rate_limits": {"settings": {"max_events": 1, "window": "1s"}}}`, maxKeys))
		app, err := ctx.App("rate_limit")
		if err != nil {
			t.Fatal(err)
		}
		return app.(caddy.App)
	}
	succeed := func(f func() error) {
		t.Helper()
		if err := f(); err != nil {
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
		if got := memory.Examine(t.Context()).MaxKeys; got != want {
			t.Fatalf("%s: max_keys is %d, want %d", when, got, want)
		}
	}
	succeed(running.Start)
	expect("while the first config runs", 5000)

	failing := load(2000)
	expect("while another config is loaded", 5000)
	succeed(failing.Start)
	succeed(failing.Stop)
	expect("after that config has failed", 5000)

	next := load(3000)
	succeed(next.Start)
	succeed(running.Stop)
	expect("after a reload", 3000)
}

// TestLimitInErrorRoutes: a limit in error routes refuses with its own status, and nothing is logged as an error.
func TestLimitInErrorRoutes(t *testing.T) {
	address := caddytest.FreeAddress(t)
	logs := caddytest.RunConfig(t, address, `http://`+address+` {
	error 404
	handle_errors {
		rate_limit {
			zone mistakes {
				rate 2/1h
			}
		}
		respond "not here" {err.status_code}
	}
}`)
	for i, want := range []int{404, 404, 429, 429} {
		response, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want || (response.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d: status %d, %v, want %d", i, response.StatusCode, response.Header, want)
		}
	}
	if wrong := logs.Filter(func(e observer.LoggedEntry) bool { return e.Level >= zapcore.ErrorLevel }).All(); len(wrong) > 0 {
		t.Errorf("logged: %v", wrong)
	}
}

// TestBurstOfZero: a burst of 0 from a placeholder allows nothing, and a larger one as much as it says.
func TestBurstOfZero(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
		for burst, want := range map[string]string{"": "200 200 200 429 429", "0": "429 429 429 429 429", "1": "200 429 429 429 429", "-1": "403 403 403 403 403"} {
			h := caddytest.Load(t, `{"rate_limits": {"z`+burst+`": {"algorithm": "`+algorithm+`", "max_events": 5, "window": "1h", "burst": "{http.request.header.X-B} 3"}}}`)
			if got := caddytest.Statuses(t, h, 5, "X-B", burst); got != want {
				t.Errorf("%s, burst %q: %s, want %s", algorithm, burst, got, want)
			}
		}
	}
}
