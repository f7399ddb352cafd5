package caddyratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dunglas/httpsfv"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// failingStore gives no answer.
type failingStore struct{ store.Store }

func (failingStore) Take(context.Context, []store.Check, []algorithms.Decision) error {
	return errors.New("no answer")
}
func (failingStore) Close() error { return nil }

type failingBackend struct{ backend.MemoryStore }

func (*failingBackend) Identity() (string, error)  { return "failing", nil }
func (*failingBackend) Open() (store.Store, error) { return failingStore{}, nil }

// fail has a handler's store give no answer until the test ends.
func fail(t *testing.T, h *Handler) {
	t.Helper()
	failing, err := pool.Acquire(new(failingBackend))
	if err != nil {
		t.Fatal(err)
	}
	own := h.store
	h.store = failing
	t.Cleanup(func() {
		h.store = own
		if err := failing.Release(); err != nil {
			t.Error(err)
		}
	})
}

func TestStoreError(t *testing.T) {
	for policy, want := range map[string]int{zone.AllowOnError: 200, zone.DenyOnError: 503} {
		h := provision(t, config(t), `{"on_store_error": "`+policy+`", "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`)
		fail(t, h)
		for range 5 {
			status, header := serve(t, h, "203.0.113.7:1")
			if status != want {
				t.Errorf("%s: status %d, want %d", policy, status, want)
			}
			if header.Get("RateLimit") != "" || header.Get("RateLimit-Policy") != "" {
				t.Errorf("%s: limits nobody checked are told: %v", policy, header)
			}
			if (header.Get("Retry-After") == "1") != (policy == zone.DenyOnError) {
				t.Errorf("%s: Retry-After %q", policy, header.Get("Retry-After"))
			}
		}
	}
}

// TestZonesDisagreeOnStoreErrors: one zone that denies is enough; those that decide
// locally do so all or nothing; of the others nothing is told.
func TestZonesDisagreeOnStoreErrors(t *testing.T) {
	zone := func(name, policy string, events int) string {
		if policy != "" {
			policy = fmt.Sprintf(`, "on_store_error": %q`, policy)
		}
		return fmt.Sprintf(`"%s-%s": {"max_events": %d, "window": "1h"%s}`, t.Name(), name, events, policy)
	}
	for _, c := range []struct {
		name     string
		handler  string // its policy
		zones    []string
		statuses []int
		told     string // the zones in RateLimit-Policy
		limit    string // the zone in RateLimit, and what remains
	}{
		{"all allow", "allow", []string{zone("a", "", 1), zone("b", "", 1)}, []int{200, 200, 200}, "", ""},
		{"one denies", "allow", []string{zone("c", "", 1), zone("d", "deny", 9), zone("e", "local", 9)}, []int{503, 503}, "", ""},
		{"one allows", "deny", []string{zone("f", "allow", 1)}, []int{200, 200}, "", ""},
		{"one is local", "allow", []string{zone("g", "", 1), zone("h", "local", 4)}, []int{200, 200, 429, 429}, "h", "h 0"},
		{"all are local", "local", []string{zone("i", "", 4), zone("j", "", 100)}, []int{200, 200, 429, 429}, "i j", "i 0"},
		{"zero", "local", []string{zone("k", "", 0)}, []int{429}, "k", "k 0"},
		{"less than one each", "local", []string{zone("l", "", 1)}, []int{200, 429}, "l", "l 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := provision(t, config(t), `{"on_store_error": "`+c.handler+`", "instances": 2, "rate_limits": {`+strings.Join(c.zones, ",")+`}}`)
			fail(t, h)
			var header http.Header
			for i, want := range c.statuses {
				var status int
				if status, header = serve(t, h, "203.0.113.7:1"); status != want {
					t.Fatalf("request %d: status %d, want %d", i+1, status, want)
				}
				if (header.Get("Retry-After") != "") != (want != http.StatusOK) {
					t.Errorf("request %d: status %d with Retry-After %q", i+1, status, header.Get("Retry-After"))
				}
			}
			var told []string
			policies, err := httpsfv.UnmarshalList(header.Values("RateLimit-Policy"))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range policies {
				told = append(told, strings.TrimPrefix(p.(httpsfv.Item).Value.(string), "TestZonesDisagreeOnStoreErrors-"))
			}
			if strings.Join(told, " ") != c.told {
				t.Errorf("told of zones %q, want %q", told, c.told)
			}
			limit := strings.NewReplacer(`"TestZonesDisagreeOnStoreErrors-`, "", `";r=`, " ", ";t=", " ").Replace(header.Get("RateLimit"))
			if !strings.HasPrefix(limit, c.limit) || c.limit == "" && limit != "" {
				t.Errorf("RateLimit: %q, want %q", limit, c.limit)
			}
		})
	}
}

// TestDenyReachesErrorRoutes: where there are error routes, they decide what is shown.
func TestDenyReachesErrorRoutes(t *testing.T) {
	w := httptest.NewRecorder()
	r := request(w, "203.0.113.7:1")
	server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
	var handlerErr caddyhttp.HandlerError
	if err := (&Handler{answer: new(answer)}).deny(w, r); !errors.As(err, &handlerErr) || handlerErr.StatusCode != 503 {
		t.Errorf("got %v, want an error of status 503", err)
	}
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", w.Header().Get("Retry-After"))
	}
}

// fullStore answers, and has no room.
type fullStore struct{ failingStore }

func (fullStore) Take(context.Context, []store.Check, []algorithms.Decision) error {
	return fmt.Errorf("no room: %w", store.ErrFull)
}

type fullBackend struct{ failingBackend }

func (*fullBackend) Identity() (string, error)  { return "full", nil }
func (*fullBackend) Open() (store.Store, error) { return fullStore{}, nil }

// TestFullStore: whom a store has no room for is decided by this Caddy, whatever
// on_store_error says of a store that does not answer. It is said so, once.
func TestFullStore(t *testing.T) {
	for _, policy := range []string{zone.AllowOnError, zone.DenyOnError, zone.LocalOnError} {
		t.Run(policy, func(t *testing.T) {
			kept, err := pool.Acquire(new(fullBackend))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = kept.Release() }()
			h := provision(t, config(t), `{"on_store_error": "`+policy+`", "instances": 2, "rate_limits": {"zone": {"max_events": 6, "window": "1h"}}}`)
			local, err := pool.Acquire(&pool.Local{StandsFor: kept.ID})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = local.Release() }()
			own, ownLocal := h.store, h.local
			defer func() { h.store, h.local = own, ownLocal }()
			h.store, h.local = kept, local
			core, logs := observer.New(zapcore.InfoLevel)
			h.logger = zap.New(core)
			for i, want := range []int{200, 200, 200, 429, 429} {
				status, header := serve(t, h, "203.0.113.7:1")
				if status != want || header.Get("RateLimit") == "" {
					t.Errorf("request %d: %d with %v, want %d", i+1, status, header, want)
				}
			}
			counts := h.zones[0].Stats.Totals()
			if counts[outcome.Local] != 3 || counts[outcome.Refused] != 2 {
				t.Errorf("counted %v", counts)
			}
			if lines := logs.FilterMessageSnippet("the rate limit store"); lines.Len() != 1 || lines.FilterMessageSnippet("is full").Len() != 1 {
				t.Errorf("logged %v", lines.All())
			}
			if !kept.Store.Health.Answers() || kept.Store.Health.ErrorCount(store.FailureOOM) != 5 {
				t.Error("it is taken not to answer, or its errors are not counted")
			}
		})
	}
}
