package caddyratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// eachStore runs a test with both stores.
func eachStore(t *testing.T, test func(t *testing.T, kept *caddytest.Kept)) {
	t.Run("memory", func(t *testing.T) { test(t, caddytest.KeepMemory(t, memorystore.Options{})) })
	t.Run("redis", func(t *testing.T) {
		test(t, caddytest.KeepRedis(t, redisstore.Options{Address: redistest.Start(t).Addr(), Timeout: 10 * time.Second}))
	})
}

// taken is what a key has used of a zone, once all is settled that was to be: corrections
// are carried out in the order in which they came.
func taken(t *testing.T, kept *caddytest.Kept, zone, key string) int64 {
	t.Helper()
	look := func(key string, cost int64) (used int64, d algorithms.Decision) {
		d, err := kept.Take(zone, key, cost)
		if err != nil {
			t.Fatal(err)
		}
		return d.Quota - d.Remaining, d
	}
	const last = "the last of the line"
	before, d := look(last, 1)
	kept.Adjust(zone, last, 1, -1, &d)
	patient.Until(t, "all corrections before this one", func() bool {
		used, _ := look(last, 0)
		return used < before
	})
	used, _ := look(key, 0)
	return used
}

// visitor is a client that can leave, and what becomes of its request.
type visitor struct {
	inside, over chan struct{}
	leave        context.CancelFunc
	answer       chan *http.Response // nil if there was none
}

// visiting sends a request through a handler. What stands behind it runs when the request
// is inside.
func visiting(t *testing.T, h caddytest.Handler, http2 bool, behind caddyhttp.HandlerFunc, header ...string) *visitor {
	t.Helper()
	v := &visitor{inside: make(chan struct{}), over: make(chan struct{}), answer: make(chan *http.Response, 1)}
	server := listening(t, http2, func(w http.ResponseWriter, r *http.Request) {
		defer close(v.over)
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
		if err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			close(v.inside)
			return behind(w, r)
		})); err != nil {
			w.WriteHeader(caddytest.StatusOf(err))
		}
	})
	var ctx context.Context
	ctx, v.leave = context.WithCancel(t.Context())
	t.Cleanup(v.leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	go func() {
		response, _ := server.Client().Do(r) //nolint:bodyclose // leaving closes it
		v.answer <- response
	}()
	return v
}

// left499 waits until the client of a request has left, and returns what a proxy would.
func left499(r *http.Request) error {
	<-r.Context().Done()
	return caddyhttp.Error(499, r.Context().Err())
}

// TestClientsThatLeavePay: of an answer that nobody received nobody knows what it would
// have been, so a client cannot try passwords and leave before it is told.
func TestClientsThatLeavePay(t *testing.T) {
	begun := func(w http.ResponseWriter, status int) {
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
	}
	endings := []struct {
		name   string
		pays   int64
		answer bool // the client leaves when its answer has begun, or else before
		behind caddyhttp.HandlerFunc
	}{
		{"returned 499", 1, false, func(_ http.ResponseWriter, r *http.Request) error { return left499(r) }},
		{"written 499", 1, false, func(w http.ResponseWriter, r *http.Request) error {
			_ = left499(r)
			w.WriteHeader(499)
			return nil
		}},
		{"written 200", 1, false, func(w http.ResponseWriter, r *http.Request) error {
			_ = left499(r)
			_, err := io.WriteString(w, "ok")
			return err
		}},
		{"returned 502", 1, false, func(_ http.ResponseWriter, r *http.Request) error {
			_ = left499(r)
			return caddyhttp.Error(502, errors.New("the upstream broke off"))
		}},
		{"returned nothing", 1, false, func(_ http.ResponseWriter, r *http.Request) error { _ = left499(r); return nil }},
		{"panic", 1, false, func(_ http.ResponseWriter, r *http.Request) error { _ = left499(r); panic(http.ErrAbortHandler) }},
		{"panic beside a client that stays", 1, true, func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }},
		{"502 for a client that stays", 0, true, func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("the upstream broke off"))
		}},
		{"200 that was broken off", 0, true, func(w http.ResponseWriter, r *http.Request) error {
			begun(w, 200)
			return left499(r)
		}},
		{"401 that was broken off", 1, true, func(w http.ResponseWriter, r *http.Request) error {
			begun(w, 401)
			_ = left499(r)
			panic(http.ErrAbortHandler)
		}},
	}
	eachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"logins": {"key": "{http.request.header.Client}",
			"algorithm": "fixed_window", "align": "first_request", "max_events": 10, "window": "1h", "charge_on_response": {"status_code": [401]}}}}`)
		for _, http2 := range []bool{false, true} {
			for _, e := range endings {
				key := fmt.Sprint(e.name, http2)
				v := visiting(t, h, http2, e.behind, "Client", key)
				<-v.inside
				if e.answer {
					v.answer <- <-v.answer
				}
				v.leave()
				<-v.over
				if got := taken(t, kept, "logins", key); got != e.pays {
					t.Errorf("%s, HTTP/2 %v: %d were charged, want %d", e.name, http2, got, e.pays)
				}
			}
		}
	})
}

// TestNamed499 is for a zone that says what becomes of clients that leave.
func TestNamed499(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"named": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request",
		"max_events": 10, "window": "1h", "charge_on_response": {"status_code": [401, 499], "headers": {"X-Failed": ["*"]}}}}}`)
	for key, pays := range map[string]int64{"": 0, "1": 1} {
		v := visiting(t, h, false, func(w http.ResponseWriter, r *http.Request) error {
			if key != "" {
				w.Header().Set("X-Failed", key)
			}
			return left499(r)
		}, "Client", key)
		<-v.inside
		v.leave()
		<-v.over
		if got := taken(t, kept, "named", key); got != pays {
			t.Errorf("X-Failed %q: %d were charged, want %d", key, got, pays)
		}
	}
}

// TestBrokenOffAnswers: whose cost nobody was told cost what the zone says, or what was
// booked.
func TestBrokenOffAnswers(t *testing.T) {
	begun := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, "some ")
		_ = http.NewResponseController(w).Flush()
	}
	endings := []struct {
		name    string
		costs   int64
		without int64 // cost_broken_off
		leaves  string
		behind  caddyhttp.HandlerFunc
	}{
		{"before the answer", 500, 10, "before", func(_ http.ResponseWriter, r *http.Request) error { return left499(r) }},
		{"in the midst of it", 500, 10, "later", func(w http.ResponseWriter, r *http.Request) error {
			begun(w)
			_ = left499(r)
			panic(http.ErrAbortHandler)
		}},
		{"in the midst of it, without an error", 500, 10, "later", func(w http.ResponseWriter, r *http.Request) error {
			begun(w)
			_ = left499(r)
			return nil
		}},
		{"told before", 70, 70, "later", func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("X-Tokens", "70")
			begun(w)
			_ = left499(r)
			panic(http.ErrAbortHandler)
		}},
		{"complete", 10, 10, "later", func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Length", "5")
			begun(w)
			return left499(r)
		}},
		{"the upstream breaks off", 500, 10, "", func(w http.ResponseWriter, _ *http.Request) error {
			begun(w)
			panic(http.ErrAbortHandler)
		}},
		{"an error in the midst of it", 500, 10, "", func(w http.ResponseWriter, _ *http.Request) error {
			begun(w)
			return errors.New("the upstream broke off")
		}},
		{"an error before it", 10, 10, "", func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("the upstream broke off"))
		}},
		{"nothing is said", 10, 10, "", func(w http.ResponseWriter, _ *http.Request) error { begun(w); return nil }},
		{"a trailer", 70, 70, "", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Trailer", "X-Tokens")
			begun(w)
			w.Header().Set("X-Tokens", "70")
			return nil
		}},
	}
	eachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {
			"tokens": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h",
				"cost": 10, "cost_header": "X-Tokens", "cost_broken_off": 500},
			"without": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h",
				"cost": 10, "cost_header": "X-Tokens"}
		}}`)
		for _, http2 := range []bool{false, true} {
			for _, e := range endings {
				key := fmt.Sprint(e.name, http2)
				v := visiting(t, h, http2, e.behind, "Client", key)
				<-v.inside
				if e.leaves == "later" {
					v.answer <- <-v.answer
				}
				if e.leaves != "" {
					v.leave()
				}
				<-v.over
				if with, without := taken(t, kept, "tokens", key), taken(t, kept, "without", key); with != e.costs || without != e.without {
					t.Errorf("%s, HTTP/2 %v: %d and %d were charged, want %d and %d", e.name, http2, with, without, e.costs, e.without)
				}
			}
		}
	})
}

// TestLateCostOfFreeRequests: what was booked at no cost is charged what the response says.
func TestLateCostOfFreeRequests(t *testing.T) {
	eachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"free": {"key": "{http.request.header.Client}", "algorithm": "token_bucket", "max_events": 100, "window": "1h",
			"cost": "{http.request.header.Cost}", "cost_header": "X-Tokens", "charge_on_response": {"status_code": [200]}}}}`)
		for key, c := range map[string]struct {
			status int
			costs  int64
		}{"counts": {200, 70}, "does not": {404, 0}} {
			v := visiting(t, h, false, func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("X-Tokens", "70")
				w.WriteHeader(c.status)
				return nil
			}, "Client", key, "Cost", "0")
			<-v.over
			if got := taken(t, kept, "free", key); got != c.costs {
				t.Errorf("%s: %d were charged, want %d", key, got, c.costs)
			}
		}
	})
}

// TestDryRunsOfRefusedRequests: what one zone refuses costs nothing in one that is a dry
// run, as it would cost nothing if that were enforced.
func TestDryRunsOfRefusedRequests(t *testing.T) {
	eachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		for _, algorithm := range refunding {
			h := caddytest.Load(t, fmt.Sprintf(`{%[1]s"log": "off", "rate_limits": {
				"a firm %[2]s": {"max_events": 2, "window": "1h", "match": [{"path": ["/path"]}]},
				"b dry %[2]s": {"algorithm": %[2]q, "max_events": 100, "window": "1h", "dry_run": true}
			}}`, kept.Option(), algorithm))
			for range 5 {
				caddytest.Serve(t, h, "203.0.113.7:1")
			}
			if got := taken(t, kept, "b dry "+algorithm, ""); got != 2 {
				t.Errorf("%s: 5 requests of which 2 passed took %d of the dry run, want 2", algorithm, got)
			}
		}
	})
}

// TestPoliciesOfOwnLimits: the second handler too tells a key that has a limit of its own of
// that one.
func TestPoliciesOfOwnLimits(t *testing.T) {
	ctx := caddytest.Config(t)
	layer := func(name string) caddytest.Handler {
		return caddytest.LoadInto(t, ctx, fmt.Sprintf(`{"rate_limits": {%q: {"max_events": 3, "window": "1m", "overrides": true}}}`, name))
	}
	outer, inner := layer("outer policy"), layer("inner policy")
	caddytest.Run(t, ctx)
	for _, zone := range []string{"outer%20policy", "inner%20policy"} {
		caddytest.Admin(t, http.MethodPut, "zones/"+zone+"/key/override", `{"limit": "50/1m"}`)
	}
	v := visiting(t, outer, false, func(w http.ResponseWriter, r *http.Request) error { return inner.ServeHTTP(w, r, caddytest.Passing) })
	response := <-v.answer
	if got := response.Header.Get("RateLimit-Policy"); strings.Count(got, ";q=50") != 2 || strings.Contains(got, ";q=3") {
		t.Errorf("RateLimit-Policy: %s, want 50 twice", got)
	}
}
