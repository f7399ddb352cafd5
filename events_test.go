package caddyratelimit

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestExceededEvent: subscribers hear of a key once in a window, whatever is logged.
func TestExceededEvent(t *testing.T) {
	for _, c := range []struct {
		options string
		key     any
	}{
		{`"log": "off", `, nil}, {`"log": "all", "log_key": true, `, "0"}, {`"log": "first", `, nil},
	} {
		ctx := config(t)
		l := caddytest.Listen(t, ctx, "rate_limit_exceeded")
		h, _ := flooded(t, ctx, c.options)
		flood(t, h, 3, 100)
		if len(l.Heard) != 3 {
			t.Fatalf("%s: %d events, want one for each of 3 keys", c.options, len(l.Heard))
		}
		data := l.Heard[0].Data
		if data["zone"] != "flooded" || data["wait"] != time.Hour || data["remote_ip"] != "203.0.113.7" || data["client_ip"] != "203.0.113.7" ||
			data["limit"] != int64(0) || data["key"] != c.key {
			t.Errorf("%s: %v", c.options, data)
		}
		if origin := l.Heard[0].Origin().CaddyModule().ID; origin != "http.handlers.rate_limit" {
			t.Errorf("the event comes from %s", origin)
		}
	}
}

// TestWhatEventsTell: of a key no more than a line does, and of slots no wait, for nobody
// knows when they come back.
func TestWhatEventsTell(t *testing.T) {
	ctx := config(t)
	l := caddytest.Listen(t, ctx, "rate_limit_exceeded")
	h := provision(t, ctx, `{"log_key": true, "rate_limits": {"slots": {"key": "{http.request.header.X-Key}", "algorithm": "concurrency", "max_events": 0}}}`)
	core, logs := observer.New(zapcore.InfoLevel)
	h.logger = zap.New(core)
	long := strings.Repeat("k", 10*maxLoggedKey)
	statuses(t, h, 1, "X-Key", long)
	if len(l.Heard) != 1 || logs.Len() != 1 {
		t.Fatalf("%d events, %d lines", len(l.Heard), logs.Len())
	}
	for what, data := range map[string]map[string]any{"event": l.Heard[0].Data, "line": logs.All()[0].ContextMap()} {
		if _, told := data["wait"]; told || data["key"] != long[:maxLoggedKey]+"..." {
			t.Errorf("%s: wait %v, key of %d bytes", what, data["wait"], len(data["key"].(string)))
		}
	}
}

// banning is a zone in which the third refusal of a key begins a ban.
const banning = `"key": "{http.request.header.X-Key}", "max_events": 1, "window": "1m", "ban": {"duration": "1h", "after": 3, "window": "10m"}`

// TestBannedEvent: one for each ban, also if another zone refuses for longer, and none
// where the ban does not hold.
func TestBannedEvent(t *testing.T) {
	ctx := config(t)
	l := caddytest.Listen(t, ctx, "rate_limit_banned")
	h := provision(t, ctx, `{"log": "off", "log_key": true, "rate_limits": {
		"banning": {`+banning+`}, "banning dry": {"dry_run": true, `+banning+`}, "long": {"max_events": 1, "window": "2h", "match": [{"header": {"X-Key": ["long*"]}}]}}}`)
	began := time.Now()
	for _, key := range []string{"a", "b", "long-c"} {
		statuses(t, h, 10, "X-Key", key)
	}
	if len(l.Heard) != 3 {
		t.Fatalf("%d events, want one for each of 3 keys", len(l.Heard))
	}
	for i, key := range []string{"a", "b", "long-c"} {
		data := l.Heard[i].Data
		until, _ := data["until"].(time.Time)
		if data["zone"] != "banning" || data["key"] != key || data["wait"] != time.Hour || data["limit"] != int64(1) ||
			data["remote_ip"] != "203.0.113.7" || data["client_ip"] != "203.0.113.7" || until.Sub(began) < time.Hour || time.Until(until) > time.Hour {
			t.Errorf("%v", data)
		}
	}
	z := h.zones[0]
	if err := h.store.Store.Store.(store.Overrider).Unban(t.Context(), z.Policy.Rule, "a"); err != nil {
		t.Fatal(err)
	}
	statuses(t, h, 10, "X-Key", "a")
	if len(l.Heard) != 4 {
		t.Errorf("%d events after an unban, want one more", len(l.Heard)-3)
	}
}

// TestFloodOfBans: keys that nobody has seen before do not make events at their rate.
func TestFloodOfBans(t *testing.T) {
	ctx := config(t)
	l := caddytest.Listen(t, ctx, "rate_limit_banned")
	h := provision(t, ctx, `{"rate_limits": {"flood of bans": {`+banning+`}}}`)
	core, logs := observer.New(zapcore.InfoLevel)
	h.logger = zap.New(core)
	r, a := request(nil, "203.0.113.7:1"), &attempt{firm: 1, zones: h.zones, grants: []*zone.QuotaPolicy{h.zones[0].Policy}}
	a.decisions = []algorithms.Decision{{Banned: true, BanBegins: true, RetryAfter: time.Hour}}
	for i := range 2 * journalShards * journalKeys {
		a.checks = []store.Check{{Key: strconv.Itoa(i)}}
		h.tellBans(r, a)
	}
	if n := len(l.Heard); n < journalShards*journalKeys/2 || n > journalShards*journalKeys {
		t.Errorf("%d events, want at most %d", n, journalShards*journalKeys)
	}
	h.journal.close()
	if logs.Len() > 0 {
		t.Errorf("bans are no refusals of their own: %v", logs.All()[0])
	}
}

// TestNobodyListens: what no one would hear is not made.
func TestNobodyListens(t *testing.T) {
	h := provision(t, config(t), `{"log": "off", "rate_limits": {"nobody listens": {`+banning+`}}}`)
	r, f := request(nil, "203.0.113.7:1"), oneRefusal(h, "a")
	a := &attempt{firm: 1, zones: h.zones, grants: []*zone.QuotaPolicy{f.grant}, checks: []store.Check{{Key: "a"}}}
	a.decisions = []algorithms.Decision{{Banned: true, BanBegins: true, RetryAfter: time.Hour}}
	if n := testing.AllocsPerRun(100, func() { h.note(r, f); h.tellBans(r, a) }); n > 0 {
		t.Errorf("%v allocations for what nobody hears", n)
	}
}
