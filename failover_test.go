package caddyratelimit

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestOneLineForEachChange: a store that fails a thousand requests, or every other one,
// writes a line when that begins and one when it is over.
func TestOneLineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		logger := zap.New(core)
		var h health
		down := errors.New("connection refused")
		for i := range 1000 {
			h.report(nil, allowOnError, logger)
			if i == 500 {
				h.report(down, allowOnError, logger)
			}
		}
		for range 1000 {
			h.report(down, allowOnError, logger)
			h.report(nil, allowOnError, logger)
			time.Sleep(10 * time.Millisecond) // of the test's own time
		}
		if logs.Len() != 1 {
			t.Fatalf("%d lines, want 1: %v", logs.Len(), logs.All())
		}
		time.Sleep(quiet + 1)
		for range 1000 {
			h.report(nil, allowOnError, logger)
		}
		lines := logs.All()
		if len(lines) != 2 || lines[0].Message != "the rate limit store does not answer" || lines[1].Message != "the rate limit store answers again" {
			t.Fatalf("want a line for each change: %v", lines)
		}
		if lines[0].ContextMap()["error"] != "connection refused" || lines[0].ContextMap()["on_store_error"] != "allow" {
			t.Errorf("the line does not say why: %v", lines[0].ContextMap())
		}
	})
}

// failingStore gives no answer.
type failingStore struct{ store.Store }

func (failingStore) Take(context.Context, []store.Check, []algorithms.Decision) error {
	return errors.New("no answer")
}
func (failingStore) Close() error { return nil }

type failingBackend struct{ MemoryStore }

func (*failingBackend) Identity() (string, error)  { return "failing", nil }
func (*failingBackend) Open() (store.Store, error) { return failingStore{}, nil }

func TestStoreError(t *testing.T) {
	for policy, want := range map[string]int{allowOnError: 200, denyOnError: 503} {
		h := provision(t, config(t), `{"on_store_error": "`+policy+`", "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`)
		failing, err := borrow(new(failingBackend))
		if err != nil {
			t.Fatal(err)
		}
		own := h.store
		h.store = failing
		for range 5 {
			status, header := serve(t, h, "203.0.113.7:1")
			if status != want {
				t.Errorf("%s: status %d, want %d", policy, status, want)
			}
			if header.Get("RateLimit") != "" || header.Get("RateLimit-Policy") != "" {
				t.Errorf("%s: limits nobody checked are told: %v", policy, header)
			}
			if (header.Get("Retry-After") == "1") != (policy == denyOnError) {
				t.Errorf("%s: Retry-After %q", policy, header.Get("Retry-After"))
			}
		}
		h.store = own
		if err := failing.giveBack(); err != nil {
			t.Error(err)
		}
	}
}

// TestDenyReachesErrorRoutes: where there are error routes, they decide what is shown.
func TestDenyReachesErrorRoutes(t *testing.T) {
	w := httptest.NewRecorder()
	r := request(w, "203.0.113.7:1")
	server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
	var handlerErr caddyhttp.HandlerError
	if err := deny(w, r); !errors.As(err, &handlerErr) || handlerErr.StatusCode != 503 {
		t.Errorf("got %v, want an error of status 503", err)
	}
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", w.Header().Get("Retry-After"))
	}
}
