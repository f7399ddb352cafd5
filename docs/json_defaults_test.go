package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// seenInUse has the defaults that no loaded config shows, and for each what a config with the option does: text
// that is another for other values of the option.
var seenInUse = map[string]func(t *testing.T, config string) string{
	"memory.max_keys": func(t *testing.T, config string) string {
		var options struct {
			Store struct {
				MaxKeys int `json:"max_keys"`
			}
		}
		s := openMemory(t, config, &options, func() memorystore.Options { return memorystore.Options{MaxKeys: options.Store.MaxKeys} })
		return fmt.Sprint("at most ", s.Examine(t.Context()).MaxKeys)
	},
	"handler.sweep_interval": func(t *testing.T, config string) (swept string) {
		synctest.Test(t, func(t *testing.T) {
			var options struct {
				SweepInterval caddy.Duration `json:"sweep_interval"`
			}
			s := openMemory(t, config, &options, func() memorystore.Options {
				return memorystore.Options{SweepInterval: time.Duration(options.SweepInterval)}
			})
			began := time.Now()
			rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 5, Window: time.Second})
			if err := s.Take(t.Context(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)); err != nil {
				t.Fatal(err)
			}
			for s.Keys() > 0 {
				time.Sleep(time.Second)
			}
			swept = fmt.Sprint("swept after ", time.Since(began).Round(time.Minute))
		})
		return swept
	},
	"zone.headers": func(t *testing.T, config string) string {
		_, header := caddytest.Serve(t, caddytest.Load(t, config), "203.0.113.7:1")
		return fmt.Sprint("shown: ", len(header["Ratelimit"]))
	},
	"zone.missing_key": func(t *testing.T, config string) string {
		return caddytest.Statuses(t, caddytest.Load(t, config), 11)
	},
	"zone.over": func(t *testing.T, config string) string {
		return caddytest.Statuses(t, caddytest.Load(t, config), 11)
	},
	"zone.enforce": func(t *testing.T, config string) string {
		h, refused := caddytest.Load(t, config), 0
		for key := range 500 {
			r := caddytest.RequestTo("example.com", "/")
			r.Header.Set("A", fmt.Sprint(key))
			for range 10 {
				caddytest.Status(h, r)
			}
			if caddytest.Status(h, r) == http.StatusTooManyRequests {
				refused++
			}
		}
		return fmt.Sprint(refused, " of 500 keys are refused")
	},
	"cost_response.unknown":    func(t *testing.T, config string) string { return costOf(t, config, nil) },
	"cost_response.broken_off": func(t *testing.T, config string) string { return costOf(t, config, errors.New("upstream failed")) },
}

// openMemory opens a memory store with options that are in a config.
func openMemory(t *testing.T, config string, into any, options func() memorystore.Options) *memorystore.Store {
	t.Helper()
	if err := json.Unmarshal([]byte(config), into); err != nil {
		t.Fatal(err)
	}
	s, err := memorystore.New(options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// costOf returns what a stream of two events that names no cost leaves of a limit, and how it ends.
func costOf(t *testing.T, config string, end error) string {
	t.Helper()
	h := caddytest.Load(t, config)
	ask := func(next caddyhttp.HandlerFunc) http.Header {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("A", "x")
		_ = h.ServeHTTP(w, r, next)
		return w.Header()
	}
	ask(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := w.Write([]byte("data: {}\n\ndata: {}\n\n"))
		return errors.Join(err, end)
	})
	return ask(caddytest.Passing).Get("RateLimit")
}
