package zone_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestMissingKey: requests without a value for their key share a limit, are not limited, or are
// rejected. Part of the values may be missing.
func TestMissingKey(t *testing.T) {
	for _, c := range []struct{ zone, want string }{
		{`"key": "{http.request.header.Api-Key}"`, "200 200 429"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "share"`, "200 200 429"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "skip"`, "200 200 200"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "reject"`, "401 401 401"},
		{`"key": "key {http.request.header.Api-Key}", "missing_key": "reject 400"`, "400 400 400"},
		{`"key": "{http.request.header.Api-Key} {http.request.header.User}", "missing_key": "reject"`, "401 401 401"},
		{`"key": "{http.request.header.Api-Key} {http.request.host}", "missing_key": "reject"`, "200 200 429"},
		{`"key": "{http.request.cookie.session}", "missing_key": "skip"`, "200 200 200"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"missing": {"max_events": 2, "window": "1h", `+c.zone+`}}}`)
		if got := caddytest.Statuses(t, h, 3); got != c.want {
			t.Errorf("%s: got %s, want %s", c.zone, got, c.want)
		}
		caddytest.CleanUp(t, h)
	}
	// No value uses up the limit of requests without a value.
	h := caddytest.Load(t, `{"rate_limits": {"missing": {"max_events": 1, "window": "1h", "key": "{http.request.header.A}{http.request.header.B}"}}}`)
	for _, header := range [][]string{{"A", "0:"}, {"B", "0:"}, {"A", "0:0:"}, {"A", "*"}, nil} {
		if got := caddytest.Statuses(t, h, 1, header...); got != "200" {
			t.Errorf("%q: got %s, want 200: another header has the same key", header, got)
		}
	}
}

// TestExemptAndBlock: block comes before exempt, and exempt before the limit. The header describes
// the zone only if its limit was asked.
func TestExemptAndBlock(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"policies": {
		"max_events": 0, "window": "1h",
		"exempt": [{"client_ip": {"ranges": ["10.0.0.0/8", "2001:db8::/32"]}}, {"header": {"Internal": ["yes"]}}],
		"block": [{"client_ip": {"ranges": ["10.6.6.0/24"]}}, {"path": ["/admin*"]}]
	}}}`)
	for _, c := range []struct {
		client, path string
		header       []string
		want         int
	}{
		{"203.0.113.7", "/", nil, 429},
		{"10.1.2.3", "/", nil, 200},
		{"2001:db8::1", "/", nil, 200},
		{"203.0.113.7", "/", []string{"Internal", "yes"}, 200},
		{"203.0.113.7", "/", []string{"Internal", "no"}, 429},
		{"203.0.113.7", "/admin", nil, 403},
		{"10.6.6.6", "/", nil, 403},
		{"10.1.2.3", "/admin/x", []string{"Internal", "yes"}, 403},
		// IPv4-mapped addresses, as some proxies send them.
		{"::ffff:10.1.2.3", "/", nil, 200},
		{"::ffff:10.6.6.6", "/", nil, 403},
		{"::ffff:203.0.113.7", "/", nil, 429},
		{"::ffff:a:b:c", "/", nil, 429}, // not IPv4-mapped
		{"::ffff:nonsense", "/", nil, 429},
	} {
		status, header := caddytest.AskFrom(t, h, c.client, c.path, c.header...)
		if status != c.want {
			t.Errorf("%s %s %v: got %d, want %d", c.client, c.path, c.header, status, c.want)
		}
		if described := header.Get("RateLimit") != ""; described != (status == 429) {
			t.Errorf("%s %s: status %d, RateLimit %q", c.client, c.path, status, header.Get("RateLimit"))
		}
	}
}

// TestMatchMappedAddresses: what match sees of an IPv4-mapped address is the IPv4 address. Handlers behind see the address as the
// proxy sent it.
func TestMatchMappedAddresses(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"office": {"match": [{"client_ip": {"ranges": ["198.51.100.0/24"]}}], "max_events": 1, "window": "1h"}}}`)
	seen := ""
	next := caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		seen = caddytest.Replaced(r, "{http.vars.client_ip}")
		return nil
	})
	for _, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, "::ffff:198.51.100.9")
		if err := h.ServeHTTP(w, r, next); err != nil || w.Code != want || seen != "::ffff:198.51.100.9" {
			t.Errorf("status %d, want %d; the handlers behind see the address %q; error %v", w.Code, want, seen, err)
		}
	}
}

// TestUnknownStates: a look says which limit it is about if requests can set it. A reset warns if these limits have counters of their
// own, because it cannot find them.
func TestUnknownStates(t *testing.T) {
	for limit, want := range map[string]bool{
		`"max_events": 5, "window": "1h"`:                                                                                                                                              false,
		`"max_events": "{http.request.header.N} 5", "window": "1h"`:                                                                                                                    false,
		`"algorithm": "token_bucket", "max_events": 5, "window": "1h", "burst": "{http.request.header.N} 9"`:                                                                           false,
		`"algorithm": "token_bucket", "max_events": "{http.request.header.N} 1", "window": "1h"`:                                                                                       true,
		`"algorithm": "leaky_bucket", "max_events": "{http.request.header.N}", "window": "1h"`:                                                                                         true,
		`"algorithm": "fixed_window", "max_events": "{http.request.header.N} 5", "window": "day"`:                                                                                      false,
		`"algorithm": "concurrency", "max_events": "{http.request.header.N} 5"`:                                                                                                        false,
		`"plan": {"of": "{http.request.method}", "default": "reject 405", "plans": {"GET": {"algorithm": "token_bucket", "max_events": "{http.request.header.N} 5", "window": "1h"}}}`: true,
		`"plan": {"of": "{http.request.method}", "default": "reject 405", "plans": {"GET": {"max_events": "{http.request.header.N} 5", "window": "1h"}}}`:                              false,
	} {
		ctx := caddytest.Config(t)
		caddytest.LoadInto(t, ctx, `{"store": {"backend": "memory"}, "rate_limits": {"a": {"key": "{http.request.header.Client}", `+limit+`}}}`)
		caddytest.Run(t, ctx)
		if look := caddytest.Admin(t, http.MethodGet, "zones/a/key?key=client", ""); strings.Contains(look, `"assumed": "`) != strings.Contains(limit, "{http.request.header.N}") && !strings.Contains(limit, "plan") {
			t.Errorf("%s: a look says %s", limit, look)
		}
		answer := caddytest.Admin(t, http.MethodDelete, "zones/a/key?key=client", "")
		if warns := strings.Contains(answer, "may have several counters"); warns != want || strings.Contains(answer, "it had used nothing") == want {
			t.Errorf("%s: the response is %q, want a warning: %v", limit, answer, want)
		}
	}
}
