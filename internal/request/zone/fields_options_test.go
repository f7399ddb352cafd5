package zone_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestFieldsEverywhere: fields of the body decide wherever placeholders may be, and a body that cannot be read is refused.
func TestFieldsEverywhere(t *testing.T) {
	for _, c := range []struct {
		zone   string
		bodies []string
		want   string
	}{
		{`"max_events": 5, "cost": "{http.rate_limit.json.n} 1"`, []string{`{"n":3}`, `{"n":3}`, `{"n":2}`, `{"n":"x"}`, `[{"n":1}]`, ``}, "200 429 200 403 400 429"},
		{`"max_events": 5, "cost": "{http.rate_limit.json.n}"`, []string{`{"n":3}`, `{}`, ``, `{"n":[]}`, `{"n":true}`}, "200 403 403 400 403"},
		{
			`"max_events": 1, "plan": {"of": "{http.rate_limit.json.model}", "plans": {"large": {"max_events": 2, "window": "1h"}}, "default": "large"}`,
			[]string{`{"model":"large"}`, `{"model":"none"}`, `{"model":"large"}`, `{"model":"large","model":"x"}`},
			"200 200 429 400",
		},
		{
			`"max_events": 1, "plan": {"of": "{http.rate_limit.json.model}", "plans": {"large": {"max_events": 2, "window": "1h"}}, "default": "reject 402"}`,
			[]string{`{"model":"large"}`, `{"model":"none"}`, ``, `[]`},
			"200 402 402 400",
		},
		{`"max_events": 1, "block": [{"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`{"method":"x"}`, `{"method":"y"}`, `{"method":"y"}`, `{"method":["x"]}`}, "403 200 429 400"},
		{`"max_events": 1, "block": [{"path": ["/no"], "vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`{"method":"x"}`, `[`}, "200 429"},
		{`"max_events": 1, "exempt": [{"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`{"method":"x"}`, `{"method":"x"}`, `{"method":"y"}`, `{"method":"y"}`, `x`}, "200 200 200 429 400"},
		{`"max_events": 1, "exempt": [{"path": ["/mcp"]}], "block": [{"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`{"method":"x"}`, `{"method":"y"}`, `{"method":"y"}`, `[`}, "403 200 200 400"},
		{`"max_events": 1, "exempt": [{"path": ["/mcp"]}, {"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`x`, `x`}, "200 200"},
		{`"max_events": 1, "enforce": 0, "match": [{"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`x`, `{"method":"x"}`, `{"method":"x"}`}, "200 200 200"},
		{`"max_events": 1, "match": [{"path": ["/no"], "vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`x`, `x`}, "200 200"},
		{`"max_events": 1, "match": [{"path": ["/mcp"]}, {"vars": {"{http.rate_limit.json.method}": ["x"]}}]`, []string{`x`, `x`}, "200 429"},
		{`"max_events": 1, "match": [{"vars": {"{http.rate_limit.json.method}": [""]}}]`, []string{``, ``}, "200 429"},
		{`"max_events": 1, "match": [{"vars": {"{http.rate_limit.j\u0073on.method}": ["x"]}}]`, []string{`{"method":"x"}`, `{"method":"x"}`, `{`}, "200 429 400"},
		{`"max_events": 9, "cost": "{http.rate_limit.json.n} 1", "key": "{http.rate_limit.json.id}"`, []string{`{"n":5,"id":1}`, `{"n":5,"id":1}`, `{"n":5,"id":2}`, `[{"n":1}]`}, "200 429 200 400"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"calls": {`+c.zone+`, "window": "1h"}}}`)
		var got []string
		for _, body := range c.bodies {
			got = append(got, fmt.Sprint(post(t, h, body, http.Header{}, false)))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.zone, text, c.want)
		}
		caddytest.CleanUp(t, h)
	}
}

// TestClientsCannotLowerTheirCost: what clients write in a body raises its cost above the number behind it, and never
// lowers it. Where upstreams may read another number, the request is refused, as TestHostileBodies shows for all fields.
func TestClientsCannotLowerTheirCost(t *testing.T) {
	z, err := zone.New(&config.Zone{
		Limit: config.Limit{MaxEvents: &config.Amount{Number: 1e7}, Window: config.Window{Duration: caddy.Duration(time.Hour)}},
		Cost:  &config.Amount{From: "http.rate_limit.json.max_tokens|options.num_predict", Fallback: true, Number: 4000},
	}, zone.Place{Name: "z"}, new(stats.Counters))
	if err != nil {
		t.Fatal(err)
	}
	const refused = -1
	for body, want := range map[string]int64{
		`{"max_tokens":5000}`: 5000, `{"max_tokens":5e3}`: 5000, `{"options":{"num_predict":5000}}`: 5000, `{"max_tokens":3999}`: 4000,
		`{}`: 4000, ``: 4000, `{"max_tokens":null}`: 4000, `{"max_tokens":0}`: 4000, `{"max_tokens":-1}`: 4000, `{"max_tokens":-9007199254740992}`: 4000,
		`{"messages":[{"max_tokens":1}],"x":{"max_tokens":9000}}`: 4000,
		`{"max_tokens":9007199254740992}`:                         refused, `{"max_tokens":4000.5}`: refused, `{"max_tokens":"5000"}`: 5000, `{"max_tokens":"many"}`: refused,
		`{"max_tokens":5000,"options":{"num_predict":6000}}`: refused, `{"max_tokens":1,"max_tokens":5000}`: refused, `{"max_tokens":1,"MAX_TOKENS":5000}`: refused,
		`{"max_tokens":[5000]}`: refused, `{"max_tokens":1}x`: refused,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
		var c zone.Check
		if _, err := z.Meet(&c, &placeholder.Request{Request: r}, nil); err != nil {
			t.Fatal(err)
		}
		if c.Rejection != nil {
			c.Cost = refused
		}
		if c.Cost != want {
			t.Errorf("%s costs %d, want %d (%v)", body, c.Cost, want, c.Rejection)
		}
	}
}

// TestKeysOfFields: one value has one key, whatever its type and spelling, and requests without it follow missing_key. Several zones
// look at the same body, each at its own fields.
func TestKeysOfFields(t *testing.T) {
	for _, c := range []struct{ zone, first, second, want string }{
		{``, `{"id":1}`, `{"id":1.0}`, "200 429"},
		{``, `{"id":100}`, `{"id":1e2}`, "200 429"},
		{``, `{"id":1}`, `{"id":"1"}`, "200 429"},
		{``, `{"id":true}`, `{"id":"true"}`, "200 429"},
		{``, `{"id":1}`, `{"id":2}`, "200 200"},
		{``, `{"id":null}`, `{}`, "200 429"},
		{``, ``, `{"id":""}`, "200 429"},
		{``, `{"id":"A"}`, `{"id":"a"}`, "200 200"},
		{`, "missing_key": "skip"`, ``, `{"id":null}`, "200 200"},
		{`, "missing_key": "skip"`, `x`, `{"id":[]}`, "400 400"},
		{`, "missing_key": "reject"`, ``, `{"id":1}`, "401 200"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"ids": {"max_events": 1, "window": "1h", "key": "{http.rate_limit.json.id}"`+c.zone+`},
			"also": {"max_events": 100, "window": "1h", "key": "{http.rate_limit.json.id}"},
			"others": {"match": [{"path": ["/other"]}], "max_events": 100, "window": "1h", "key": "{http.rate_limit.json.id.name}"}}}`)
		got := fmt.Sprint(post(t, h, c.first, http.Header{}, false), " ", post(t, h, c.second, http.Header{}, false))
		if got != c.want {
			t.Errorf("%s, %s and %s: %s, want %s", c.zone, c.first, c.second, got, c.want)
		}
		caddytest.CleanUp(t, h)
	}
}

// TestNoBody: a request without a body is not refused because of its headers.
func TestNoBody(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"calls": {"max_events": 100, "window": "1h", "key": "{http.rate_limit.json.method}"}}}`)
	for _, header := range []http.Header{
		{}, {"Content-Encoding": {"gzip"}}, {"Content-Type": {"text/plain; charset=utf-16"}}, {"Content-Type": {"a", "b"}},
	} {
		for _, chunked := range []bool{false, true} {
			if status := post(t, h, "", header, chunked); status != http.StatusOK {
				t.Errorf("%v, chunked %v: %d", header, chunked, status)
			}
			if status := post(t, h, "{}", header, chunked); len(header) > 0 && status != http.StatusUnsupportedMediaType {
				t.Errorf("%v, chunked %v, with a body: %d", header, chunked, status)
			}
		}
	}
}

// TestFieldsBehindTheHandler: handlers behind see the fields that a zone looks at. They have no value if the body cannot be read,
// even if a handler before could read it.
func TestFieldsBehindTheHandler(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"calls": {"enforce": 0, "max_events": 100, "window": "1h", "key": "{http.rate_limit.json.method}"}}}`)
	for body, want := range map[string]string{`{"method":"x"}`: "x", `{"method":7}`: "7", `{}`: "", ``: "", `[]`: "none", `{"method":"x","method":"y"}`: "none"} {
		repl := caddy.NewReplacer()
		repl.Set("http.rate_limit.json.method", "before")
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r = caddyhttp.PrepareRequest(r, repl, httptest.NewRecorder(), new(caddyhttp.Server))
		if status := caddytest.Status(h, r); status != http.StatusOK {
			t.Errorf("%s: status %d", body, status)
		}
		got, known := repl.GetString("http.rate_limit.json.method")
		if !known {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestSlowBody: a body that comes late holds no slot of its zones.
func TestSlowBody(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"a": {"algorithm": "concurrency", "max_events": 1}, "b": {"max_events": 100, "window": "1h", "key": "{http.rate_limit.json.id}"}}}`)
	body, client := io.Pipe()
	done := make(chan int)
	go func() {
		r := httptest.NewRequest(http.MethodPost, "http://example.com/", body)
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
		done <- caddytest.Status(h, r)
	}()
	if _, err := io.WriteString(client, `{"id":`); err != nil { // which returns when it was read
		t.Fatal(err)
	}
	for range 3 {
		if status := post(t, h, `{"id":1}`, http.Header{}, false); status != http.StatusOK {
			t.Errorf("beside a slow body: %d", status)
		}
	}
	_, _ = io.WriteString(client, `1}`)
	_ = client.Close()
	if status := <-done; status != http.StatusOK {
		t.Errorf("the slow body: %d", status)
	}
}
