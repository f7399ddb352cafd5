package respond_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestHiddenZones: a zone with headers off is in no field and in no answer of any language, also if it refuses or binds the client
// most. Fields are about the other zones.
func TestHiddenZones(t *testing.T) {
	const (
		styles = `"headers": ["draft-10", "x-ratelimit", "spring"], `
		quota  = `"quota": {"max_events": 100, "window": "1h"}`
	)
	for _, c := range []struct {
		name, zones           string
		n                     int // requests before
		limits, policies      string
		remaining, retryAfter string
		xRetryAfter, capacity string
	}{
		{"binds", quota + `, "flood": {"headers": "off", "max_events": 2, "window": "7s"}`, 0, `"quota";r=99;t=36`, `"quota";q=100;w=3600`, "99", "", "", "100"},
		{"refuses", quota + `, "flood": {"headers": "off", "max_events": 2, "window": "7s"}`, 2, `"quota";r=98`, `"quota";q=100;w=3600`, "98", "7", "", "100"},
		{"with numbers", quota + `, "flood": {"headers": "off", "max_events": 8642, "window": "7s", "cost": 4321}`, 2, `"quota";r=98`, `"quota";q=100;w=3600`, "98", "7", "", "100"},
		{"alone", `"flood": {"headers": "off", "max_events": 2, "window": "7s"}`, 2, "", "", "", "7", "", ""},
		{"both refuse", `"quota": {"max_events": 1, "window": "3s"}, "flood": {"headers": "off", "max_events": 1, "window": "7s"}`, 1, `"quota";r=0`, `"quota";q=1;w=3`, "0", "7", "7", "1"},
		{"a plan", quota + `, "flood": {"headers": "off", "plan": {"of": "{http.vars.plan}", "default": "a", "plans": {"a": {"max_events": 2, "window": "7s"}}}}`, 2, `"quota";r=98`, `"quota";q=100;w=3600`, "98", "7", "", "100"},
	} {
		for answer, contentType := range map[string]string{"problem": "", "status": "", "gRPC": "application/grpc"} {
			key := `{"key": "` + c.name + " " + answer + `", "`
			zones := strings.NewReplacer(`flood": {"`, `flood": `+key, `quota": {"`, `quota": `+key).Replace(c.zones) // which the cases share
			h := caddytest.Load(t, `{`+styles+`"on_limit": "`+strings.Replace(answer, "gRPC", "problem", 1)+`", "rate_limits": {`+zones+`}}`)
			var w *httptest.ResponseRecorder
			for range c.n + 1 {
				w, _ = refused(t, h, func(r *http.Request) { post(r, contentType, "") })
			}
			got := w.Header()
			if !strings.HasPrefix(got.Get("RateLimit"), c.limits) || c.limits == "" && got["Ratelimit"] != nil || got.Get("RateLimit-Policy") != c.policies ||
				got.Get("X-RateLimit-Remaining") != c.remaining || got.Get("Retry-After") != c.retryAfter ||
				got.Get("X-RateLimit-Retry-After") != c.xRetryAfter || got.Get("X-RateLimit-Burst-Capacity") != c.capacity {
				t.Errorf("%s: %v", c.name, got)
			}
			if text := w.Body.String() + fmt.Sprint(got); strings.Contains(text, "flood") || strings.Contains(text, "4321") || strings.Contains(text, "8642") {
				t.Errorf("%s: the zone shows: %v %s", c.name, got, w.Body)
			}
		}
	}
}

// TestHiddenInOneHandler: fields of two handlers are about the zones that clients see, whichever handler hides others.
func TestHiddenInOneHandler(t *testing.T) {
	open := caddytest.Load(t, `{"rate_limits": {"open": {"max_events": 10, "window": "1h"}}}`)
	closed := caddytest.Load(t, `{"rate_limits": {"closed": {"headers": "off", "max_events": 2, "window": "7s"}, "last": {"max_events": 20, "window": "1h"}}}`)
	for _, c := range []struct {
		first, second caddytest.Handler
		limits        [2]string
		policies      string
	}{
		{open, closed, [2]string{`"open";r=9`, `, "last";r=19`}, `"open";q=10;w=3600, "last";q=20;w=3600`},
		{closed, open, [2]string{`"open";r=8`, `, "last";r=18`}, `"last";q=20;w=3600, "open";q=10;w=3600`},
	} {
		w := httptest.NewRecorder()
		if err := caddytest.ServeTwo(c.first, c.second, w, caddytest.Request(w, "203.0.113.7:1")); err != nil {
			t.Fatal(err)
		}
		got := w.Header().Get("RateLimit")
		if !strings.HasPrefix(got, c.limits[0]) || !strings.Contains(got, c.limits[1]) || w.Header().Get("RateLimit-Policy") != c.policies {
			t.Errorf("%v, want %v and %s", w.Header(), c.limits, c.policies)
		}
	}
}
