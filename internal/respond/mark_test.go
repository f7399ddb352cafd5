package respond_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestOverPass: requests above the limit pass, and are marked for the handlers behind: by the header, which clients
// cannot send themselves, by a placeholder, in the access log and in metrics. Zones that refuse go on to do so.
func TestOverPass(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {
		"few": {"key": "{http.request.header.Client}", "max_events": 1, "window": "1h", "over": "pass", "over_header": "x-over"},
		"hard": {"key": "{http.request.header.Client}", "max_events": 3, "window": "1h"},
		"more": {"key": "{http.request.header.Client}", "missing_key": "reject", "max_events": 2, "window": "1h", "over": "pass", "over_header": "X-Over"},
		"silent": {"key": "{http.request.header.Client}", "max_events": 2, "window": "1h", "over": "pass"}}}`)
	behind := caddytest.Load(t, `{"rate_limits": {"behind": {"match": [{"path": ["/never"]}], "max_events": 1, "window": "1h", "over": "pass", "over_header": "X-Over"}}}`)
	ask := func(client string) (got string) {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header["Client"], r.Header["X-Over"] = []string{client}, []string{"forged"}
		err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return behind.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
				got = fmt.Sprintf("%q %s", r.Header["X-Over"], caddytest.Replaced(r, "{http.rate_limit.over} {http.rate_limit.zone}"))
				if logged := caddyhttp.GetVar(r.Context(), "rate_limit"); logged != nil {
					fields := zapcore.NewMapObjectEncoder()
					if err := logged.(zapcore.ObjectMarshaler).MarshalLogObject(fields); err != nil {
						t.Error(err)
					}
					got += fmt.Sprint(" ", fields.Fields["outcome"], " ", fields.Fields["over"])
				}
				return nil
			}))
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got == "" {
			return fmt.Sprintf("%d %q", w.Code, r.Header["X-Over"])
		}
		if policy := w.Header().Get("RateLimit-Policy"); policy != `"hard";q=3;w=3600` {
			t.Errorf("RateLimit-Policy %s tells of more than hard", policy)
		}
		return got
	}
	for i, want := range []string{
		`[]  hard allowed <nil>`, `["few"] few hard allowed [few]`, `["few" "more"] few,more,silent hard allowed [few more silent]`, `429 []`,
	} {
		if got := ask("a"); got != want {
			t.Errorf("request %d: %s, want %s", i+1, got, want)
		}
	}
	if got, want := ask("b"), `[]  hard allowed <nil>`; got != want {
		t.Errorf("another client: %s, want %s", got, want)
	}
	if got, want := ask(""), "401 []"; got != want {
		t.Errorf("without a key: %s, want %s", got, want)
	}
	metrics := caddytest.Scrape(t, ctx)
	maps.DeleteFunc(metrics, func(name string, n float64) bool {
		return n == 0 || !strings.HasPrefix(name, "decisions_total") || strings.Contains(name, "hard")
	})
	if want := map[string]float64{
		"decisions_total{outcome=allowed,zone=few}": 2, "decisions_total{outcome=over,zone=few}": 2, "decisions_total{outcome=not_charged,zone=few}": 2,
		"decisions_total{outcome=allowed,zone=more}": 3, "decisions_total{outcome=over,zone=more}": 1,
		"decisions_total{outcome=not_charged,zone=more}": 1, "decisions_total{outcome=rejected,zone=more}": 1,
		"decisions_total{outcome=allowed,zone=silent}": 3, "decisions_total{outcome=over,zone=silent}": 1, "decisions_total{outcome=not_charged,zone=silent}": 1,
	}; !maps.Equal(metrics, want) {
		t.Errorf("metrics %v, want %v", metrics, want)
	}
}

// TestOverHeaderOfClients: a client cannot send a mark, in none of the spellings that upstreams read as the same
// variable, and it cannot have one removed by a proxy. Other headers stay as they are.
func TestOverHeaderOfClients(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"spelled": {"key": "{http.request.header.Client}", "max_events": 1, "window": "1h", "over": "pass", "over_header": "X-Over"}}}`)
	for _, c := range []struct {
		name, value string
		stays       string
	}{
		{"X-Over", "a", ""},
		{"x-over", "a", ""},
		{"X_over", "a", ""},
		{"X_OVER", "a", ""},
		{"X.Over", "a", ""},
		{"X~Over", "a", ""},
		{"X-Overt", "a", "a"},
		{"XOver", "a", "a"},
		{"Y-Over", "a", "a"},
		{"Connection", "x-over", ""},
		{"Connection", "close, X-Over ,x_over, Upgrade", "close, Upgrade"},
		{"Connection", "keep-alive, X-Other", "keep-alive, X-Other"},
	} {
		for _, want := range []string{"", "spelled"} {
			w := httptest.NewRecorder()
			r := caddytest.Request(w, "203.0.113.7:1")
			r.Header["Client"], r.Header[c.name] = []string{c.name + c.value}, []string{c.value}
			if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
				t.Fatal(err)
			}
			if got := r.Header.Get("X-Over"); got != want {
				t.Errorf("%s: %s: the mark is %q, want %q", c.name, c.value, got, want)
			}
			if got := strings.Join(r.Header[c.name], ""); got != c.stays && (c.name != "X-Over" || want == "") {
				t.Errorf("%s: %s: the header is %q afterwards, want %q", c.name, c.value, got, c.stays)
			}
			if n := len(slices.Collect(maps.Keys(r.Header))); n > 3 {
				t.Errorf("%s: %d headers: %v", c.name, n, r.Header)
			}
		}
	}
}
