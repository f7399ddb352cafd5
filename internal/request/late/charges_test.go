package late_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestChargeOnResponse: whether a request is charged depends on its response, whichever way the
// handlers behind write the response or leave it to Caddy.
func TestChargeOnResponse(t *testing.T) {
	writes := func(code int) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(code); return nil }
	}
	returns := func(err error) caddyhttp.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) error { return err }
	}
	responses := []struct {
		name    string
		charged bool
		only    string // HTTP/1.1 or HTTP/2
		behind  caddyhttp.HandlerFunc
	}{
		{"nothing", false, "", returns(nil)},
		{"written 200", false, "", writes(200)},
		{"written 401", true, "", writes(401)},
		{"written 502", true, "", writes(502)},
		{"returned 401", true, "", returns(caddyhttp.Error(401, errors.New("denied")))},
		{"returned error", true, "", returns(errors.New("denied"))},
		{"returned 401, wrapped", true, "", returns(fmt.Errorf("wrapped: %w", caddyhttp.Error(401, errors.New("denied"))))},
		{"body without a status", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("ok"))
			return err
		}},
		{"flushed", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.(http.Flusher).Flush()
			_, err := w.Write([]byte("ok"))
			return errors.Join(err, http.NewResponseController(w).Flush())
		}},
		{"early hints, then 401", true, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(401)
			return nil
		}},
		{"error after 200", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return errors.New("upstream failed")
		}},
		{"panic", true, "", func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }},
		{"panic after 200", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			panic(http.ErrAbortHandler)
		}},
		{"hijacked", false, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) error {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return err
		}},
		{"hijack that fails", true, "HTTP/2", func(w http.ResponseWriter, _ *http.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		}},
		{"status not listed", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Failed", "1")
			return nil
		}},
	}
	behind := make(map[string]caddyhttp.HandlerFunc)
	for _, e := range responses {
		behind["/"+strings.ReplaceAll(e.name, " ", "-")] = e.behind
	}
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		h := caddytest.Load(t, `{"rate_limits": {"`+protocol+`": {"key": "{http.request.uri.path}",
			"max_events": 1, "window": "1h", "charge": {"status": ["401", "5xx"]}}}}`)
		server := caddytest.NewHandlerServer(t, h, protocol == "HTTP/2", behind)
		for _, e := range responses {
			if e.only != "" && e.only != protocol {
				continue
			}
			path := "/" + strings.ReplaceAll(e.name, " ", "-")
			first, second := caddytest.Get(server, path), caddytest.Get(server, path)
			if first == 429 || (second == 429) != e.charged {
				t.Errorf("%s, %s: got %d and then %d, want charged: %v", protocol, e.name, first, second, e.charged)
			}
		}
	}
}

// TestChargeOnResponseBooksBefore: requests are charged until their responses are known.
func TestChargeOnResponseBooksBefore(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"logins": {"algorithm": "leaky_bucket", "max_events": 2, "window": "1h", "charge": {"status": ["401"]}}}}`)
	inside, respond := make(chan bool), make(chan bool)
	server := caddytest.NewHandlerServer(t, h, false, map[string]caddyhttp.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) error {
		inside <- true
		<-respond
		w.WriteHeader(401)
		return nil
	}})
	statuses := make(chan int, 2)
	for range 2 {
		go func() { statuses <- caddytest.Get(server, "/") }()
		<-inside
	}
	if got := caddytest.Get(server, "/"); got != 429 {
		t.Errorf("while two responses are not known: got %d, want 429", got)
	}
	close(respond)
	if first, second := <-statuses, <-statuses; first != 401 || second != 401 {
		t.Errorf("got %d and %d, want 401 twice", first, second)
	}
	if got := caddytest.Get(server, "/"); got != 429 {
		t.Errorf("after two responses that are charged: got %d, want 429", got)
	}
}

// TestChargeOnHeaderFields: a response is charged if it has all fields of the option, without a
// status_code too.
func TestChargeOnHeaderFields(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"field": {"key": "{http.request.uri.path}", "max_events": 1, "window": "1h",
		"charge": {"match_header": {"X-Login": ["bad*"], "X-Any": ["*"]}}}}}`)
	behind := make(map[string]caddyhttp.HandlerFunc)
	for path, fields := range map[string][2]string{
		"/both": {"bad password", "1"}, "/one": {"bad password", ""}, "/other": {"good", "1"}, "/none": {},
	} {
		behind[path] = func(w http.ResponseWriter, _ *http.Request) error {
			for i, name := range []string{"X-Login", "X-Any"} {
				if fields[i] != "" {
					w.Header().Set(name, fields[i])
				}
			}
			_, err := w.Write([]byte("ok"))
			return err
		}
	}
	server := caddytest.NewHandlerServer(t, h, false, behind)
	for path := range behind {
		first, second := caddytest.Get(server, path), caddytest.Get(server, path)
		if first != 200 || (second == 429) != (path == "/both") {
			t.Errorf("%s: got %d and then %d, want charged: %v", path, first, second, path == "/both")
		}
	}
}
