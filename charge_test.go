package caddyratelimit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// serving serves real HTTP with a handler as Caddy does, HTTP/2 if told so. What stands
// behind the limiter is chosen by path.
func serving(t *testing.T, h caddytest.Handler, http2 bool, behind map[string]caddyhttp.HandlerFunc) *httptest.Server {
	t.Helper()
	return listening(t, http2, func(w http.ResponseWriter, r *http.Request) {
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
		if err := h.ServeHTTP(w, r, behind[r.URL.Path]); err != nil {
			w.WriteHeader(caddytest.StatusOf(err))
		}
	})
}

func listening(t *testing.T, http2 bool, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.Config.ErrorLog = nil
	if http2 {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
		// The client would repeat by itself what it gets no answer to on a used connection.
		server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	}
	t.Cleanup(server.Close)
	return server
}

// status asks, and returns 0 if there is no answer.
func status(server *httptest.Server, path string) int {
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func TestChargeOnResponse(t *testing.T) {
	says := func(code int) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(code); return nil }
	}
	fails := func(err error) caddyhttp.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) error { return err }
	}
	endings := []struct {
		name    string
		charged bool
		only    string // HTTP/1.1 or HTTP/2
		behind  caddyhttp.HandlerFunc
	}{
		{"nothing", false, "", fails(nil)},
		{"written 200", false, "", says(200)},
		{"written 401", true, "", says(401)},
		{"written 403", false, "", says(403)},
		{"written 502", true, "", says(502)},
		{"returned 401", true, "", fails(caddyhttp.Error(401, errors.New("no")))},
		{"returned 403", false, "", fails(caddyhttp.Error(403, errors.New("no")))},
		{"returned error", true, "", fails(errors.New("no"))},
		{"returned 401 in another error", true, "", fails(fmt.Errorf("so: %w", caddyhttp.Error(401, errors.New("no"))))},
		{"returned 403 in another error", false, "", fails(fmt.Errorf("so: %w", caddyhttp.Error(403, errors.New("no"))))},
		{"body alone", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("ok"))
			return err
		}},
		{"written 401 with a body", true, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(401)
			_, err := io.Copy(w, strings.NewReader("no"))
			return err
		}},
		{"copied body", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("ok"))
			return err
		}},
		{"streamed", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.(http.Flusher).Flush()
			_, err := w.Write([]byte("ok"))
			return errors.Join(err, http.NewResponseController(w).Flush())
		}},
		{"401 that is streamed", true, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(401)
			return http.NewResponseController(w).Flush()
		}},
		{"hints, then 401", true, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(401)
			return nil
		}},
		{"error after 200", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return errors.New("the upstream went away")
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
		{"no hijack", true, "HTTP/2", func(w http.ResponseWriter, _ *http.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		}},
		{"field, but another status", false, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Failed", "1")
			return nil
		}},
	}
	behind := make(map[string]caddyhttp.HandlerFunc)
	for _, e := range endings {
		behind["/"+strings.ReplaceAll(e.name, " ", "-")] = e.behind
	}
	for _, algorithm := range refunding {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			h := caddytest.Load(t, fmt.Sprintf(`{"rate_limits": {"%s %s": {"key": "{http.request.uri.path}",
				"algorithm": %q, "max_events": 1, "window": "1h", "charge_on_response": {"status_code": [401, 5]}}}}`, algorithm, protocol, algorithm))
			server := serving(t, h, protocol == "HTTP/2", behind)
			for _, e := range endings {
				if e.only != "" && e.only != protocol {
					continue
				}
				path := "/" + strings.ReplaceAll(e.name, " ", "-")
				first, second := status(server, path), status(server, path)
				if first == 429 || (second == 429) != e.charged {
					t.Errorf("%s, %s, %s: got %d and then %d, want charged: %v", algorithm, protocol, e.name, first, second, e.charged)
				}
			}
		}
	}
}

// refunding are the algorithms that can give back what a response does not count for.
var refunding = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"}

// TestChargeOnResponseBooksBefore: while the responses are not known, all count.
func TestChargeOnResponseBooksBefore(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"logins": {"algorithm": "leaky_bucket", "max_events": 2, "window": "1h", "charge_on_response": {"status_code": [401]}}}}`)
	inside, decided := make(chan bool), make(chan bool)
	server := serving(t, h, false, map[string]caddyhttp.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) error {
		inside <- true
		<-decided
		w.WriteHeader(401)
		return nil
	}})
	answers := make(chan int, 2)
	for range 2 {
		go func() { answers <- status(server, "/") }()
		<-inside
	}
	if got := status(server, "/"); got != 429 {
		t.Errorf("beside two that are not decided: %d, want 429", got)
	}
	close(decided)
	if first, second := <-answers, <-answers; first != 401 || second != 401 {
		t.Errorf("got %d, %d", first, second)
	}
	if got := status(server, "/"); got != 429 {
		t.Errorf("after two failures: %d, want 429", got)
	}
}

// TestChargeHeader: a field alone, with a value and without.
func TestChargeHeader(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"field": {"key": "{http.request.uri.path}", "max_events": 1, "window": "1h",
		"charge_on_response": {"headers": {"X-Login": ["bad*"], "X-Any": ["*"]}}}}}`)
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
	server := serving(t, h, false, behind)
	for path := range behind {
		first, second := status(server, path), status(server, path)
		if first != 200 || (second == 429) != (path == "/both") {
			t.Errorf("%s: %d, %d", path, first, second)
		}
	}
}

// TestCostHeaderDoesNotLeave: however late it comes, and for requests that are not
// charged as well.
func TestCostHeaderDoesNotLeave(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"priced": {"algorithm": "token_bucket", "max_events": 1000, "window": "1h",
		"cost_header": "x-tokens", "exempt": [{"path": ["/exempt"]}]}}}`)
	sets := func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Tokens", "5")
		w.Header().Set("X-Other", "5")
		_, err := w.Write([]byte("ok"))
		return err
	}
	server := serving(t, h, false, map[string]caddyhttp.HandlerFunc{
		"/": sets, "/exempt": sets,
		"/unreadable": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header()["X-Tokens"] = []string{"5", "6"}
			w.Header().Set("X-Other", "5")
			return nil
		},
		"/hints": func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("X-Tokens", "5")
			w.Header().Set("X-Other", "5")
			w.WriteHeader(http.StatusEarlyHints)
			if w.Header().Get("X-Tokens") != "5" {
				t.Error("the field did not survive the hints")
			}
			return sets(w, r)
		},
		"/trailer": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Other", "5")
			w.Header().Set("Trailer", "X-Tokens, X-More")
			_, err := w.Write([]byte("ok"))
			w.Header().Set("X-Tokens", "5")
			w.Header().Set("X-More", "5")
			w.Header()[http.TrailerPrefix+"X-Tokens"] = []string{"5"}
			return err
		},
	})
	for _, path := range []string{"/", "/exempt", "/unreadable", "/hints", "/trailer"} {
		hints := http.Header{}
		trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			hints = http.Header(header)
			return nil
		}}
		r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.Header.Get("X-Other") != "5" {
			t.Errorf("%s: another field is missing", path)
		}
		for where, header := range map[string]http.Header{"header": response.Header, "trailer": response.Trailer, "hints": hints} {
			if got := header.Get("X-Tokens"); got != "" {
				t.Errorf("%s: the %s says X-Tokens: %s", path, where, got)
			}
		}
		if path == "/trailer" && response.Trailer.Get("X-More") != "5" {
			t.Error("another trailer is missing")
		}
	}
}

// TestCostHeader: what is booked is replaced by what it was, into debt if need be.
func TestCostHeader(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"late": {"key": "{http.request.uri.path}", "algorithm": "token_bucket", "max_events": 100, "window": "1h",
		"cost": 10, "cost_header": "X-Tokens"}}}`)
	says := func(costs ...string) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			w.Header()["X-Tokens"] = costs
			return nil
		}
	}
	server := serving(t, h, false, map[string]caddyhttp.HandlerFunc{
		"/cheap": says("2"), "/free": says("0"), "/dear": says("500"), "/silent": says(), "/unreadable": says("x"), "/twice": says("1", "2"),
		"/failing": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Tokens", "70")
			return errors.New("the upstream went away")
		},
		"/trailer": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Trailer", "X-Tokens")
			_, err := w.Write([]byte("ok"))
			w.Header().Set("X-Tokens", "70")
			return err
		},
	})
	for path, want := range map[string]int64{
		"/cheap": 100 - 2 - 10, "/free": 100 - 10, "/silent": 100 - 20, "/unreadable": 100 - 20, "/twice": 100 - 20,
		"/failing": 100 - 70 - 10, "/trailer": 100 - 70 - 10, "/dear": -1,
	} {
		status(server, path)
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode == 429 {
			// 500 of 100 were taken, and 10 must fit: 410 come back in 36 seconds each.
			if wait := response.Header.Get("Retry-After"); want != -1 || len(wait) != len("14760") || wait > "14760" || wait < "14700" {
				t.Errorf("%s: refused for %s seconds", path, wait)
			}
			continue
		}
		var left int64
		if _, err := fmt.Sscanf(response.Header.Get("RateLimit"), `"late";r=%d`, &left); err != nil || left != want {
			t.Errorf("%s: %q, want r=%d", path, response.Header.Get("RateLimit"), want)
		}
	}
}

// TestCostHeaderInLayers: where a request passes several handlers, each reads the field, and
// the client does not.
func TestCostHeaderInLayers(t *testing.T) {
	ctx := caddytest.Config(t)
	layer := func(name string) caddytest.Handler {
		return caddytest.LoadInto(t, ctx, fmt.Sprintf(`{"rate_limits": {%q: {"algorithm": "fixed_window", "align": "first_request",
			"max_events": 100, "window": "1h", "cost_header": "X-Tokens", "charge_on_response": {"status_code": [2]}}}}`, name))
	}
	handlers := []caddytest.Handler{layer("outer"), layer("middle"), layer("inner")}
	chain := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Tokens", "30")
		if r.URL.Path == "/hints" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		_, err := io.WriteString(w, "ok")
		return err
	})
	for _, h := range slices.Backward(handlers[1:]) {
		next := chain
		chain = func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, next) }
	}
	server := serving(t, handlers[0], false, map[string]caddyhttp.HandlerFunc{"/": chain, "/hints": chain})
	for _, path := range []string{"/", "/hints"} {
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("X-Tokens"); got != "" {
			t.Errorf("%s: the client is told %s", path, got)
		}
	}
	for _, h := range handlers {
		_, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if got := header.Get("RateLimit"); !strings.Contains(got, ";r=39") {
			t.Errorf("after 30 twice: %s, want r=39", got)
		}
	}
}
