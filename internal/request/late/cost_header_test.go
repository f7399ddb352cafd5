package late_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestCostHeaderIsStripped: the client does not see the field, however late the upstream sets it,
// and whether or not the request is charged.
func TestCostHeaderIsStripped(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"priced": {"algorithm": "token_bucket", "max_events": 1000, "window": "1h",
		"charge": {"header": "x-tokens"}, "exempt": [{"path": ["/exempt"]}]}}}`)
	sets := func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Tokens", "5")
		w.Header().Set("X-Other", "5")
		_, err := w.Write([]byte("ok"))
		return err
	}
	server := caddytest.NewHandlerServer(t, h, false, map[string]caddyhttp.HandlerFunc{
		"/": sets, "/exempt": sets,
		"/unreadable": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header()["X-Tokens"] = []string{"5", "6"}
			w.Header().Set("X-Other", "5")
			return nil
		},
		"/trailer": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Other", "5")
			w.Header().Set("Trailer", "X-More")
			_, err := w.Write([]byte("ok"))
			w.Header().Set("X-Tokens", "5")
			w.Header().Set("X-More", "5")
			w.Header()[http.TrailerPrefix+"X-Tokens"] = []string{"5"}
			return err
		},
	})
	for _, path := range []string{"/", "/exempt", "/unreadable", "/trailer"} {
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.Header.Get("X-Other") != "5" {
			t.Errorf("%s: X-Other is missing", path)
		}
		for where, header := range map[string]http.Header{"header": response.Header, "trailer": response.Trailer} {
			if got, ok := header["X-Tokens"]; ok {
				t.Errorf("%s: the %s has X-Tokens: %q", path, where, got)
			}
		}
		if path == "/trailer" && response.Trailer.Get("X-More") != "5" {
			t.Error("the trailer X-More is missing")
		}
	}
}

// TestCostHeader: the cost in the response replaces the cost that was charged before, also if the
// key gets into debt. A value that is no cost changes nothing.
func TestCostHeader(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"tokens": {"key": "{http.request.uri.path}", "algorithm": "token_bucket", "max_events": 100, "window": "1h",
		"cost": 10, "charge": {"header": "X-Tokens"}}}}`)
	costs := func(values ...string) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			w.Header()["X-Tokens"] = values
			return nil
		}
	}
	server := caddytest.NewHandlerServer(t, h, false, map[string]caddyhttp.HandlerFunc{
		"/cheap": costs("2"), "/free": costs("0"), "/dear": costs("500"), "/silent": costs(), "/unreadable": costs("x"), "/twice": costs("1", "2"),
		"/failing": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Tokens", "70")
			return errors.New("upstream failed")
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
		caddytest.Get(server, path)
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode == 429 {
			// 500 of 100 were taken, and 10 must fit. So 410 must come back, each in 36 seconds.
			if wait := response.Header.Get("Retry-After"); want != -1 || len(wait) != len("14760") || wait > "14760" || wait < "14700" {
				t.Errorf("%s: refused for %s seconds, want 14700 to 14760, and only for /dear", path, wait)
			}
			continue
		}
		var left int64
		if _, err := fmt.Sscanf(response.Header.Get("RateLimit"), `"tokens";r=%d`, &left); err != nil || left != want {
			t.Errorf("%s: %q, want r=%d", path, response.Header.Get("RateLimit"), want)
		}
	}
}

// TestCostHeaderOfSeveralHandlers: if a request passes several handlers, all of them read the
// field, and the client does not see it.
func TestCostHeaderOfSeveralHandlers(t *testing.T) {
	ctx := caddytest.Config(t)
	load := func(name string) caddytest.Handler {
		return caddytest.LoadInto(t, ctx, fmt.Sprintf(`{"rate_limits": {%q: {"algorithm": "fixed_window", "align": "first_request",
			"max_events": 100, "window": "1h", "charge": {"header": "X-Tokens", "status": ["2xx"]}}}}`, name))
	}
	handlers := []caddytest.Handler{load("outer"), load("middle"), load("inner")}
	chain := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Tokens", "30")
		_, err := io.WriteString(w, "ok")
		return err
	})
	for _, h := range slices.Backward(handlers[1:]) {
		next := chain
		chain = func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, next) }
	}
	server := caddytest.NewHandlerServer(t, handlers[0], false, map[string]caddyhttp.HandlerFunc{"/": chain})
	for range 2 {
		response, err := server.Client().Get(server.URL + "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("X-Tokens"); got != "" {
			t.Errorf("the client sees X-Tokens: %s", got)
		}
	}
	for _, h := range handlers {
		_, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if got := header.Get("RateLimit"); !strings.Contains(got, ";r=39") {
			t.Errorf("RateLimit after two requests of cost 30 and one of cost 1: %s, want r=39", got)
		}
	}
}

// TestLateCostOfFreeRequests: a request that cost nothing before is charged the cost that its
// response says.
func TestLateCostOfFreeRequests(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"free": {"key": "{http.request.header.Client}", "algorithm": "token_bucket", "max_events": 100, "window": "1h",
		"cost": "{http.request.header.Cost}", "charge": {"header": "X-Tokens", "status": ["200"]}}}}`)
	for key, c := range map[string]struct {
		status int
		cost   int64
	}{"charged": {200, 70}, "not charged": {404, 0}} {
		e := caddytest.Send(t, h, false, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Tokens", "70")
			w.WriteHeader(c.status)
			return nil
		}, "Client", key, "Cost", "0")
		<-e.Done
		if got := kept.Used(t, "free", key); got != c.cost {
			t.Errorf("%s: charged %d, want %d", key, got, c.cost)
		}
	}
}
