package integration_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestHandleErrors: a refusal is an HTTP error, so error routes can answer it. The headers
// about the limit stay.
func TestHandleErrors(t *testing.T) {
	t.Parallel()
	dead := redistest.FreePort(t)
	s := startCaddy(t, caddyfile("", `
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
	client := newClient(t, "")
	if a := s.get(client, "/limited"); a.status != http.StatusOK || a.body != "ok" {
		t.Fatalf("status %d, body %q, want 200 ok", a.status, a.body)
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
		a := s.get(client, step.path)
		if a.status != step.status || a.body != step.body {
			t.Errorf("%s: status %d, body %q, want %d %q", step.path, a.status, a.body, step.status, step.body)
		}
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 || wait > 3600 {
			t.Errorf("%s: Retry-After %q, want 1 to 3600", step.path, a.header["Retry-After"])
		}
		if q, _, err := rateLimit(a.header); err != nil || q.zone != step.zone {
			t.Errorf("%s: RateLimit is about zone %q, error %v, want %q", step.path, q.zone, err, step.zone)
		}
	}
}

// TestMatcherErrorIsReturned: a zone whose matcher fails must not be skipped, or a client that
// makes the matcher fail has no limit.
func TestMatcherErrorIsReturned(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, caddyfile("", `
		rate_limit {
			zone large {
				match expression `+"`int({header.X-Size}) > 100`"+`
				events 1
				window 1h
			}
		}
		respond ok`))
	client := newClient(t, "")
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
		if a := s.get(client, "/", "X-Size", step.size); a.status != step.status {
			t.Errorf("X-Size %s: status %d, want %d", step.size, a.status, step.status)
		}
	}
	lines, _ := s.lines()
	for _, l := range lines {
		if l.Level == "error" && strings.HasPrefix(l.Logger, "http.log.error") {
			return
		}
	}
	t.Error("Caddy's log says nothing of the matcher's error")
}
