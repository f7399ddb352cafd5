package respond_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

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
