//go:build deep

package costs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// errorPages answers 401 with 200, and 404 with 401. Other errors keep their status.
const errorPages = `
	handle_errors 401 {
		respond "we say 200" 200
	}
	handle_errors 404 {
		respond "we say 401" 401
	}
	handle_errors {
		respond "{err.status_code}"
	}`

// TestChargesOfErrors: what counts is the response that the client receives, which error routes
// make of an error. Where that cannot be known, the charge stands.
func TestChargesOfErrors(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		for name, c := range map[string]struct {
			options string
			left    map[string]int64 // of 100, by path
		}{
			"seen":     {"", map[string]int64{"/401": 100, "/404": 99, "/403": 100, "/ok": 100, "/written": 99}},
			"not seen": {"servers {\ntimeouts {\nwrite_idle -1s\n}\n}", map[string]int64{"/401": 99, "/404": 99, "/403": 99, "/ok": 100, "/written": 99}},
		} {
			s := harness.StartCaddy(t, harness.Caddyfile(c.options, `
				rate_limit {
					zone failures {
						key         {header.X-Client}
						algorithm   fixed_window
						events      100
						window      year
						cost        {header.X-Cost} 1
						charge on_response {
							status 401
						}
					}
					`+store+`
				}
				error /401 401
				error /404 404
				error /403 403
				respond /written 401
				respond ok
				`+errorPages))
			client := harness.NewClient(t, "")
			for path, status := range map[string]int{"/401": 200, "/404": 401, "/403": 403, "/ok": 200, "/written": 401} {
				if a := s.Get(client, path, "X-Client", name+path); a.Status != status {
					t.Fatalf("%s: status %d, want %d", path, a.Status, status)
				}
			}
			for path, left := range c.left {
				if left == 100 {
					awaitLeft(t, s, name+", "+path, name+path, left)
				}
			}
			// What another request gave back later has arrived, so nothing is on its way.
			s.Get(client, "/ok", "X-Client", name+"the last")
			awaitLeft(t, s, name+", the last", name+"the last", 100)
			for path, left := range c.left {
				awaitLeft(t, s, name+", "+path, name+path, left)
			}
		}
	})
}

// TestInvokedSubroutes: the error routes of a subroute answer for the limiters of the named
// routes that it invokes.
func TestInvokedSubroutes(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", "respond ok"))
	limiter := func(zone string) string {
		return fmt.Sprintf(`{"handler": "rate_limit", "rate_limits": {%q: {"max_events": 1, "window": "1h"}}}`, zone)
	}
	const (
		ok   = `{"handler": "static_response", "body": "ok"}`
		page = `"errors": {"routes": [{"handle": [{"handler": "static_response", "status_code": "429", "body": "a page"}]}]}`
	)
	sub := func(handlers, errors string) string {
		return fmt.Sprintf(`{"handler": "subroute", "routes": [{"handle": [%s]}]%s}`, handlers, errors)
	}
	site := func(path, handler string) string {
		return fmt.Sprintf(`{"match": [{"path": [%q]}], "handle": [%s]}`, path, handler)
	}
	config := fmt.Sprintf(`{"admin": {"listen": "unix/%s", "config": {"persist": false}}, "apps": {"http": {"servers": {"s": {"listen": ["fd/3"], "automatic_https": {"disable": true},
		"named_routes": {
			"invoked": {"handle": [%s]}, "nested": {"handle": [%s]}, "inner": {"handle": [%s]}
		},
		"routes": [%s, %s, %s]}}}}}`,
		filepath.Join(s.Dir, "admin"), limiter("invoked"), sub(`{"handler": "invoke", "name": "inner"}`, ", "+page), limiter("inner"),
		site("/invoked", sub(`{"handler": "invoke", "name": "invoked"}, `+ok, ", "+page)),
		site("/nested", `{"handler": "invoke", "name": "nested"}, `+ok),
		site("/around", sub(limiter("around")+", "+ok, ", "+page)))
	if !json.Valid([]byte(config)) {
		t.Fatal(config)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(http.MethodPost, "/load", "application/json", config); err != nil {
		t.Fatal(err)
	}
	client := harness.NewClient(t, "")
	for _, path := range []string{"/invoked", "/nested", "/around"} {
		s.Get(client, path)
		if a := s.Get(client, path); a.Status != http.StatusTooManyRequests || a.Body != "a page" {
			t.Errorf("%s: status %d, body %q, want a page", path, a.Status, a.Body)
		}
	}
}
