package headers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestHandleErrors: a refusal is an HTTP error, so error routes can answer it. The headers
// about the limit stay.
func TestHandleErrors(t *testing.T) {
	t.Parallel()
	dead := redistest.FreePort(t)
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		handle /limited {
			rate_limit {
				zone logins {
					events 1
					window 1h
				}
			}
			respond ok
		}
		handle /teapot {
			rate_limit {
				zone teas {
					events 0
					window 1h
				}
				status 418
			}
			respond ok
		}
		handle /down {
			rate_limit {
				zone down {
					events 1
					window 1h
				}
				store redis {
					address 127.0.0.1:`+strconv.Itoa(dead)+`
				}
				on_store_error deny
			}
			respond ok
		}
		handle_errors {
			respond "{http.error.status_code} {http.rate_limit.exceeded.name}"
		}`))
	client := harness.NewClient(t, "")
	if a := s.Get(client, "/limited"); a.Status != http.StatusOK || a.Body != "ok" {
		t.Fatalf("status %d, body %q, want 200 ok", a.Status, a.Body)
	}
	for _, step := range []struct {
		path   string
		status int
		body   string
		zone   string
	}{
		{"/limited", http.StatusTooManyRequests, "429 logins", "logins"},
		{"/teapot", http.StatusTeapot, "418 teas", "teas"},
		{"/down", http.StatusServiceUnavailable, "503 {http.rate_limit.exceeded.name}", ""}, // Caddy leaves it as it is
	} {
		a := s.Get(client, step.path)
		if a.Status != step.status || a.Body != step.body {
			t.Errorf("%s: status %d, body %q, want %d %q", step.path, a.Status, a.Body, step.status, step.body)
		}
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 3600 {
			t.Errorf("%s: Retry-After %q, want 1 to 3600", step.path, a.Header["Retry-After"])
		}
		if q, _, err := harness.RateLimit(a.Header); err != nil || q.Zone != step.zone {
			t.Errorf("%s: RateLimit is about zone %q, error %v, want %q", step.path, q.Zone, err, step.zone)
		}
	}
}

// TestMatcherErrorIsReturned: a zone whose matcher fails must not be skipped, or a client that
// makes the matcher fail has no limit.
func TestMatcherErrorIsReturned(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone large {
				match expression `+"`int({header.X-Size}) > 100`"+`
				events 1
				window 1h
			}
		}
		respond ok`))
	client := harness.NewClient(t, "")
	for _, step := range []struct {
		size   string
		status int
	}{
		{"7", http.StatusOK},
		{"200", http.StatusOK},
		{"200", http.StatusTooManyRequests},
		{"many", http.StatusInternalServerError},
		{"7", http.StatusOK},
		{"many", http.StatusInternalServerError},
	} {
		if a := s.Get(client, "/", "X-Size", step.size); a.Status != step.status {
			t.Errorf("X-Size %s: status %d, want %d", step.size, a.Status, step.status)
		}
	}
	lines, _ := s.Lines()
	for _, l := range lines {
		if l.Level == "error" && strings.HasPrefix(l.Logger, "http.log.error") {
			return
		}
	}
	t.Error("Caddy's log says nothing of the matcher's error")
}
