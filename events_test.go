package caddyratelimit

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// listener keeps the events that it hears.
type listener struct{ heard []caddy.Event }

func (l *listener) Handle(_ context.Context, e caddy.Event) error {
	l.heard = append(l.heard, e)
	return nil
}

// listen subscribes to an event of a config.
func listen(t *testing.T, ctx caddy.Context, name string) *listener {
	t.Helper()
	app, err := ctx.App("events")
	if err != nil {
		t.Fatal(err)
	}
	l := new(listener)
	if err := app.(*caddyevents.App).On(name, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestExceededEvent: subscribers hear of a key once in a window, whatever is logged.
func TestExceededEvent(t *testing.T) {
	for _, c := range []struct {
		options string
		key     any
	}{
		{`"log": "off", `, nil}, {`"log": "all", "log_key": true, `, "0"}, {`"log": "first", `, nil},
	} {
		ctx := config(t)
		l := listen(t, ctx, "rate_limit_exceeded")
		h, _ := flooded(t, ctx, c.options)
		flood(t, h, 3, 100)
		if len(l.heard) != 3 {
			t.Fatalf("%s: %d events, want one for each of 3 keys", c.options, len(l.heard))
		}
		data := l.heard[0].Data
		if data["zone"] != "flooded" || data["wait"] != time.Hour || data["remote_ip"] != "203.0.113.7" || data["client_ip"] != "203.0.113.7" ||
			data["limit"] != int64(0) || data["key"] != c.key {
			t.Errorf("%s: %v", c.options, data)
		}
		if origin := l.heard[0].Origin().CaddyModule().ID; origin != "http.handlers.rate_limit" {
			t.Errorf("the event comes from %s", origin)
		}
	}
}

// TestWhatEventsTell: of a key no more than a line does, and of slots no wait, for nobody
// knows when they come back.
func TestWhatEventsTell(t *testing.T) {
	ctx := config(t)
	l := listen(t, ctx, "rate_limit_exceeded")
	h := provision(t, ctx, `{"log_key": true, "rate_limits": {"slots": {"key": "{http.request.header.X-Key}", "algorithm": "concurrency", "max_events": 0}}}`)
	core, logs := observer.New(zapcore.InfoLevel)
	h.logger = zap.New(core)
	long := strings.Repeat("k", 10*maxLoggedKey)
	statuses(t, h, 1, "X-Key", long)
	if len(l.heard) != 1 || logs.Len() != 1 {
		t.Fatalf("%d events, %d lines", len(l.heard), logs.Len())
	}
	for what, data := range map[string]map[string]any{"event": l.heard[0].Data, "line": logs.All()[0].ContextMap()} {
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
	l := listen(t, ctx, "rate_limit_banned")
	h := provision(t, ctx, `{"log": "off", "log_key": true, "rate_limits": {
		"banning": {`+banning+`}, "banning dry": {"dry_run": true, `+banning+`}, "long": {"max_events": 1, "window": "2h", "match": [{"header": {"X-Key": ["long*"]}}]}}}`)
	began := time.Now()
	for _, key := range []string{"a", "b", "long-c"} {
		statuses(t, h, 10, "X-Key", key)
	}
	if len(l.heard) != 3 {
		t.Fatalf("%d events, want one for each of 3 keys", len(l.heard))
	}
	for i, key := range []string{"a", "b", "long-c"} {
		data := l.heard[i].Data
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
	if len(l.heard) != 4 {
		t.Errorf("%d events after an unban, want one more", len(l.heard)-3)
	}
}

// TestFloodOfBans: keys that nobody has seen before do not make events at their rate.
func TestFloodOfBans(t *testing.T) {
	ctx := config(t)
	l := listen(t, ctx, "rate_limit_banned")
	h := provision(t, ctx, `{"rate_limits": {"flood of bans": {`+banning+`}}}`)
	core, logs := observer.New(zapcore.InfoLevel)
	h.logger = zap.New(core)
	r, a := request(nil, "203.0.113.7:1"), &attempt{firm: 1, zones: h.zones, grants: []*zone.QuotaPolicy{h.zones[0].Policy}}
	a.decisions = []algorithms.Decision{{Banned: true, BanBegins: true, RetryAfter: time.Hour}}
	for i := range 2 * journalShards * journalKeys {
		a.checks = []store.Check{{Key: strconv.Itoa(i)}}
		h.tellBans(r, a)
	}
	if n := len(l.heard); n < journalShards*journalKeys/2 || n > journalShards*journalKeys {
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

// heard waits for events, which come from goroutines.
type heard chan caddy.Event

func (h heard) Handle(_ context.Context, e caddy.Event) error {
	h <- e
	return nil
}

// TestStoreStateEvent: one when the store stops answering, one when it is back, however
// many handlers use it.
func TestStoreStateEvent(t *testing.T) {
	ctx := config(t)
	app, err := ctx.App("events")
	if err != nil {
		t.Fatal(err)
	}
	h := make(heard, 100)
	if err := app.(*caddyevents.App).On("rate_limit_store_state", h); err != nil {
		t.Fatal(err)
	}
	var s *pool.Health
	for _, zone := range []string{"one", "other"} {
		s = provision(t, ctx, `{"rate_limits": {"`+zone+`": {"max_events": 3, "window": "1h"}}}`).store.Store.Health
	}
	for range 100 {
		s.Report(errors.New("no answer"), zap.NewNop())
	}
	down := <-h
	s.Down.Last.Add(-2 * int64(pool.RecoveryTime))
	for range 100 {
		s.Report(nil, zap.NewNop())
	}
	up := <-h
	if down.Data["state"] != "down" || down.Data["error"] != "no answer" || down.Data["store"] != "store memory" || up.Data["state"] != "up" {
		t.Errorf("heard %v and %v", down.Data, up.Data)
	}
	if len(h) > 0 {
		t.Errorf("heard %d more", len(h))
	}
}
