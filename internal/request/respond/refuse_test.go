package respond_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestSubrouteHandlesRefusals: a refusal is an error if a subroute around the handler has routes
// for errors. Otherwise the handler answers.
func TestSubrouteHandlesRefusals(t *testing.T) {
	const limiter = `{"handler": "rate_limit", "rate_limits": {"caught": {"max_events": 0, "window": "1h"}}}`
	ctx := caddytest.Config(t)
	for _, c := range []struct {
		name, json string
		status     int
	}{
		{"no subroute", `{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}]}`, 429},
		{"subroute with errors", `{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}],
			"errors": {"routes": [{"handle": [{"handler": "static_response", "status_code": 418, "body": "{http.rate_limit.exceeded.name}"}]}]}}`, 418},
		{"outer subroute with errors", `{"handler": "subroute", "routes": [{"handle": [{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}]}]}],
			"errors": {"routes": [{"handle": [{"handler": "static_response", "status_code": 418, "body": "{http.rate_limit.exceeded.name}"}]}]}}`, 418},
	} {
		module, err := ctx.LoadModuleByID("http.handlers.subroute", []byte(strings.Replace(c.json, `"handler": "subroute", `, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		caddytest.Started(t, ctx)
		w := httptest.NewRecorder()
		if err := module.(*caddyhttp.Subroute).ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddytest.Passing); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if w.Code != c.status || c.status == 418 && w.Body.String() != "caught" {
			t.Errorf("%s: status %d, body %q, want %d", c.name, w.Code, w.Body, c.status)
		}
	}
}

// rejecting are zones that refuse a request to their path by its key, plan, limit or cost.
const rejecting = `"rate_limits": {
	"all": {"max_events": 100, "window": "1h"},
	"key": {"match": [{"path": ["/key"]}], "key": "{http.request.header.Key}", "max_events": 9, "window": "1h", "missing_key": "reject"},
	"quota": {"match": [{"path": ["/quota"]}], "max_events": "{http.vars.quota}", "window": "1h"},
	"plan": {"match": [{"path": ["/plan"]}], "plan": {"of": "{http.vars.plan}", "default": "reject 402", "plans": {"free": {"max_events": 1, "window": "1h"}}}},
	"dear": {"match": [{"path": ["/dear"]}], "max_events": 1, "window": "1h", "cost": 2}
}}`

// TestRejections: if the server has error routes, a rejection is an error, as a refusal by a limit is.
func TestRejections(t *testing.T) {
	for path, status := range map[string]int{"/key": 401, "/plan": 402, "/quota": 403, "/dear": 429} {
		h := caddytest.Load(t, `{`+rejecting)
		var r *http.Request
		w, err := refused(t, h, func(q *http.Request) { r, q.URL.Path = q, path; errorRoutes(q) })
		var handlerErr caddyhttp.HandlerError
		if !errors.As(err, &handlerErr) || handlerErr.StatusCode != status {
			t.Errorf("%s: got %v, want an error of status %d", path, err, status)
		}
		// The error routes may have a limit of their own.
		next := caddytest.Load(t, `{"headers": ["x-ratelimit"], "rate_limits": {"error routes": {"max_events": 9, "window": "1h"}}}`)
		if err := next.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := caddytest.Replaced(r, "{http.rate_limit.allowed} {http.rate_limit.zone}"); got != "false "+path[1:] {
			t.Errorf("%s: in the error routes, placeholders show %q, want zone %s", path, got, path[1:])
		}
	}
}

// TestDenyReachesErrorRoutes: if the store does not answer and a zone denies, error routes answer.
func TestDenyReachesErrorRoutes(t *testing.T) {
	h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"on_store_error": "deny", "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`)
	w, err := refused(t, h, errorRoutes)
	var handlerErr caddyhttp.HandlerError
	if !errors.As(err, &handlerErr) || handlerErr.StatusCode != 503 {
		t.Errorf("got %v, want an error of status 503", err)
	}
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q, want 1", w.Header().Get("Retry-After"))
	}
}

// TestProblem: the body of a refusal is a JSON problem, as the draft of the headers defines it,
// also if there are error routes.
func TestProblem(t *testing.T) {
	h := caddytest.Load(t, `{"on_limit": "problem", "rate_limits": {
		"a": {"max_events": 0, "window": "1m"}, "bürst": {"max_events": 0, "window": "1h"}, "open": {"max_events": 9, "window": "1m"}}}`)
	w, err := refused(t, h, errorRoutes)
	if err != nil {
		t.Fatal(err)
	}
	if w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Retry-After") != "60" {
		t.Errorf("status %d, header %v", w.Code, w.Header())
	}
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(body)
	const want = `{"detail":"the limit of zone a is used up: 0 left of 0, the request costs 1. Wait 60 seconds before the next request.","retry_after":60,"status":429,"title":"Request cannot be satisfied as assigned quota has been exceeded",` +
		`"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["a","b%C3%BCrst"],"zone":"a"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestProblemTypes: a ban and a server that can do no more are other problems than a limit that is used up.
func TestProblemTypes(t *testing.T) {
	const types = `"type":"https://iana.org/assignments/http-problem-types#`
	down := caddytest.Failing(t, caddytest.ErrNoAnswer).Option()
	for _, test := range []struct {
		config    string
		status, n int // of the last of n requests
		want      string
	}{
		{`"rate_limits": {"z": {"max_events": 1, "window": "1h"}}`, 429, 2, types + `quota-exceeded"`},
		{`"rate_limits": {"z": {"max_events": 1, "window": "1h", "ban": {"duration": "1h", "after": 1, "window": "1h"}}}`, 429, 3, types + `abnormal-usage-detected"`},
		{down + `"on_store_error": "deny", "rate_limits": {"z": {"max_events": 1, "window": "1h"}}`, 503, 1, types + `temporary-reduced-capacity"`},
	} {
		h := caddytest.Load(t, `{"on_limit": "problem", `+test.config+`}`)
		var w *httptest.ResponseRecorder
		for range test.n {
			w, _ = refused(t, h, func(*http.Request) {})
		}
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: status %d, want %d, and %s, want %s", test.config, w.Code, test.status, w.Body, test.want)
		}
	}
}

// TestProblemOfBannedNetwork: the limits of zones before that of the ban do not refuse.
func TestProblemOfBannedNetwork(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"on_limit": "problem", "rate_limits": {"before": {"max_events": 9, "window": "1h"},
		"of the ban": {"key": "{http.request.remote.host}", "overrides": true, "max_events": 9, "window": "1h"}}}`)
	if w, err := refused(t, h, func(*http.Request) {}); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v", w.Code, err)
	}
	of := store.Selector{Network: netip.MustParsePrefix("203.0.113.0/24")}
	if err := kept.Opened().SetRule(t.Context(), kept.Rule("of the ban"), of, store.Override{Kind: store.KindBanned, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w, err := refused(t, h, func(*http.Request) {})
	if got := w.Body.String(); err != nil || !strings.Contains(got, `"zone":"of the ban"`) || strings.Contains(got, "before\"") {
		t.Errorf("%v, %s", err, got)
	}
}

// TestCostAboveTheLimit: a request that costs more than the limit can never pass. So it gets no time to come again, but
// both numbers. Other requests of its client are told as usual.
func TestCostAboveTheLimit(t *testing.T) {
	for _, algorithm := range []string{"sliding_window_log", "token_bucket", "fixed_window", "sliding_window_counter", "leaky_bucket", "concurrency"} {
		window := `"window": "1m", `
		if algorithm == "concurrency" {
			window = ""
		}
		h := caddytest.Load(t, `{"on_limit": "problem", "headers": ["draft-10", "x-ratelimit"], "rate_limits": {"z": {
			"algorithm": "`+algorithm+`", `+window+`"max_events": 5, "cost": "{http.request.header.Cost}"}}}`)
		ask := func(cost string) (*httptest.ResponseRecorder, http.Header) {
			w, err := refused(t, h, func(r *http.Request) { r.Header.Set("Cost", cost) })
			if err != nil {
				t.Fatal(err)
			}
			return w, w.Header()
		}
		w, header := ask("7")
		if w.Code != 429 || header.Get("Retry-After") != "" || header.Get("X-Ratelimit-Retry-After") != "" || header.Get("RateLimit") != `"z";r=5` {
			t.Errorf("%s, cost 7: status %d, header %v", algorithm, w.Code, header)
		}
		if !strings.Contains(w.Body.String(), `"detail":"this request costs 7, the limit is 5. Ask for less in one request: waiting does not help."`) {
			t.Errorf("%s, cost 7: %s", algorithm, w.Body)
		}
		if algorithm == "concurrency" { // the slots are free again
			continue
		}
		if w, _ := ask("4"); w.Code != 200 {
			t.Errorf("%s, cost 4: status %d", algorithm, w.Code)
		}
		w, header = ask("4")
		if w.Code != 429 || header.Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "1 left of 5") {
			t.Errorf("%s, cost 4 of 1: status %d, header %v, %s", algorithm, w.Code, header, w.Body)
		}
	}
}

// TestSlotsAndRate: a slot may come back at any time, so a limit that refuses for longer binds the client more.
func TestSlotsAndRate(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"slots": {"algorithm": "concurrency", "max_events": 1, "lease": "1h"},
		"slots and rate": {"max_events": 1, "window": "30m"}
	}}`)
	w := httptest.NewRecorder()
	err := h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		status, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if after, _ := strconv.Atoi(header.Get("Retry-After")); status != http.StatusTooManyRequests || after < 60 {
			t.Errorf("while both refuse: status %d, %v", status, header)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestRejectedClientsAreTold: a problem says what is wrong with the request in the client's words, and
// has no values. A 401 has a challenge, as RFC 9110, section 15.5.2, wants.
func TestRejectedClientsAreTold(t *testing.T) {
	const (
		missing = `"missing_key": "reject"`
		header  = `"key": "{http.request.header.x-api-key}", `
		plan    = `"plan": {"of": "%s", "default": "reject 403", "plans": {"free": {}}}`
	)
	for _, c := range []struct {
		zone, fields      string
		status            int
		detail, challenge string
	}{
		{header + missing, "", 401, "the request has no key", `ApiKey in=header, name="X-Api-Key"`},
		{header + `"missing_key": "reject 403"`, "", 403, "the request has no key", ""},
		{`"key": "{http.request.header.Authorization}", ` + missing, "", 401, "the request has no key", `Bearer realm="restricted"`},
		{`"key": "{http.request.uri.query.api_key}", ` + missing, "", 401, "the request has no key", `ApiKey in=query, name="api_key"`},
		{`"key": "{http.request.cookie.sid} {http.request.header.A}/{http.request.header.B}", ` + missing, "", 401, "the request has no key", `ApiKey in=cookie, name="sid"`},
		{`"key": "{http.auth.user.id}", ` + missing, "", 401, "the request has no key", ""},
		{`"key": "{http.vars.tenant}", ` + missing, "", 401, "the request has no key", ""},
		{fmt.Sprintf(plan, "{http.request.header.Plan}"), "g", 403, "the request has no plan", ""},
		{fmt.Sprintf(plan, "{http.vars.plan}"), "", 403, "the request has no plan", ""},
		{`"cost": "{http.request.header.Plan}"`, "x", 403, "the request has no valid limit", ""},
		{`"block": [{}]`, "", 403, "the request is blocked", ""},
		{`"key": "{http.request.header.Plan}"`, "a b", 400, "the request has different values for header Plan", ""},
	} {
		h := caddytest.Load(t, `{"on_limit": "problem", "rate_limits": {"z": {"max_events": 9, "window": "1h", `+c.zone+`}}}`)
		w, err := refused(t, h, func(r *http.Request) { r.Header["Plan"] = strings.Fields(c.fields) })
		if err != nil {
			t.Fatalf("%s: %v", c.zone, err)
		}
		var got struct{ Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Detail != c.detail+". Change the request: waiting does not help." {
			t.Errorf("%s: status %d, %q, %v; want %d, %q", c.zone, w.Code, got.Detail, err, c.status, c.detail)
		}
		if got := w.Header().Get("WWW-Authenticate"); got != c.challenge {
			t.Errorf("%s: the challenge is %s, want %s", c.zone, got, c.challenge)
		}
	}
}

// TestChallengeIsADefault: what other handlers set before or in error routes stays.
func TestChallengeIsADefault(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"z": {"max_events": 9, "window": "1h", "key": "{http.request.header.Key}", "missing_key": "reject"}}}`)
	for name, before := range map[string]string{"before": `Basic realm="x"`, "error routes": ""} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		errorRoutes(r)
		want := `ApiKey in=header, name="Key"`
		if before != "" {
			w.Header().Set("WWW-Authenticate", before)
			want = before
		}
		if err := h.ServeHTTP(w, r, caddytest.Passing); err == nil {
			t.Errorf("%s: there is no error for the error routes", name)
		}
		if got := w.Header().Values("WWW-Authenticate"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: error routes find %q, want %s", name, got, want)
		}
		w.Header().Set("WWW-Authenticate", "Negotiate") // as the handler of an error route does
		w.WriteHeader(http.StatusUnauthorized)
		if got := w.Result().Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != "Negotiate" {
			t.Errorf("%s: the client gets %q, want what the error route has set", name, got)
		}
	}
}
