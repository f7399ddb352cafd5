package report_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestKindsAreReportedApart: a refusal of one kind does not suppress one of another kind, and those without a line
// are counted by kind.
func TestKindsAreReportedApart(t *testing.T) {
	ctx, logs := caddytest.Logged(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"both": {
		"max_events": 0, "window": "1h", "block": [{"header": {"Bad": ["*"]}}]}}}`)
	for range 3 {
		caddytest.Ask(t, h, "/")
		caddytest.Ask(t, h, "/", "Bad", "x")
	}
	caddytest.CleanUp(t, h)
	var got []string
	for _, entry := range logs.All() {
		got = append(got, fmt.Sprint(entry.Message, " ", entry.ContextMap()["more"]))
	}
	want := []string{"rate limit exceeded <nil>", "request rejected <nil>", "rate limit exceeded again 2", "request rejected again 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestExceededEvent: subscribers are called once for a zone in a second, whatever is logged.
func TestExceededEvent(t *testing.T) {
	for _, c := range []struct {
		options string
		key     any
	}{
		{`"log": "off", `, nil}, {`"log": "all", "log_key": true, `, "0"}, {`"log": "first", `, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := caddytest.Config(t)
			l := caddytest.Listen(t, ctx, "rate_limit_exceeded")
			h := caddytest.LoadInto(t, ctx, `{`+c.options+`"rate_limits": {"flooded": {"key": "{http.request.header.X-Key}", "max_events": 0, "window": "1h"}}}`)
			for range 3 {
				for i := range 30 {
					caddytest.Ask(t, h, "/", "X-Key", strconv.Itoa(i%3))
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if len(l.Events) != 3 {
				t.Fatalf("%s: %d events, want one for each of 3 seconds", c.options, len(l.Events))
			}
			data := l.Events[0].Data
			if data["zone"] != "flooded" || data["wait"] != time.Hour || data["remote_ip"] != "203.0.113.7" ||
				data["limit"] != int64(0) || data["key"] != c.key {
				t.Errorf("%s: the event has %v", c.options, data)
			}
			if origin := l.Events[0].Origin().CaddyModule().ID; origin != "http.handlers.rate_limit" {
				t.Errorf("the event comes from %s", origin)
			}
			caddytest.CleanUp(t, h)
		})
	}
}

// TestContentOfEvents: an event has no more of a key than a line does, and no wait for slots,
// because it is not known when one comes back.
func TestContentOfEvents(t *testing.T) {
	ctx, logs := caddytest.Logged(t)
	l := caddytest.Listen(t, ctx, "rate_limit_exceeded")
	h := caddytest.LoadInto(t, ctx, `{"log_key": true, "rate_limits": {"slots": {"key": "{http.request.header.X-Key}", "algorithm": "concurrency", "max_events": 0}}}`)
	const most = 1024
	long := strings.Repeat("k", 10*most)
	caddytest.Statuses(t, h, 1, "X-Key", long)
	lines := logs.FilterMessage("rate limit exceeded").All()
	if len(l.Events) != 1 || len(lines) != 1 {
		t.Fatalf("%d events and %d lines, want one of each", len(l.Events), len(lines))
	}
	for what, data := range map[string]map[string]any{"event": l.Events[0].Data, "line": lines[0].ContextMap()} {
		if _, hasWait := data["wait"]; hasWait || data["key"] != long[:most]+"..." {
			t.Errorf("%s: wait %v, key of %d bytes", what, data["wait"], len(data["key"].(string)))
		}
		if data["client_ip"] != "203.0.113.7" {
			t.Errorf("%s: client_ip %v", what, data["client_ip"])
		}
	}
}

// banning is a zone in which the third refusal of a key begins a ban.
const banning = `"key": "{http.request.header.X-Key}", "max_events": 1, "window": "1m", "ban": {"duration": "1h", "after": 3, "window": "10m"}`

// TestBannedEvent: there is one event for each ban, also if another zone refuses for longer, and none
// in a dry run.
func TestBannedEvent(t *testing.T) {
	ctx := caddytest.Config(t)
	l := caddytest.Listen(t, ctx, "rate_limit_banned")
	h := caddytest.LoadInto(t, ctx, `{"log": "off", "log_key": true, "rate_limits": {
		"banning": {`+banning+`}, "banning dry": {"enforce": 0, `+banning+`}, "long": {"max_events": 1, "window": "2h", "match": [{"header": {"X-Key": ["long*"]}}]}}}`)
	began := time.Now()
	for _, key := range []string{"a", "b", "long-c"} {
		caddytest.Statuses(t, h, 10, "X-Key", key)
	}
	if len(l.Events) != 3 {
		t.Fatalf("%d events, want one for each of 3 keys", len(l.Events))
	}
	for i, key := range []string{"a", "b", "long-c"} {
		data := l.Events[i].Data
		until, _ := data["until"].(time.Time)
		if data["zone"] != "banning" || data["key"] != key || data["wait"] != time.Hour || data["limit"] != int64(1) ||
			data["remote_ip"] != "203.0.113.7" || data["client_ip"] != "203.0.113.7" || until.Sub(began) < time.Hour || time.Until(until) > time.Hour {
			t.Errorf("the event of key %s has %v", key, data)
		}
	}
	caddytest.Run(t, ctx)
	caddytest.Admin(t, http.MethodDelete, "zones/banning/key/ban?key=a", "")
	caddytest.Statuses(t, h, 10, "X-Key", "a")
	if len(l.Events) != 4 {
		t.Errorf("%d events after an unban, want one more", len(l.Events)-3)
	}
}

// TestNearLimit: requests that pass near the limit are counted, and there is no line. What refuses, and what only asks, is not near.
func TestNearLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"log_key": true, "rate_limits": {
			"all": {"max_events": 1000, "window": "1h"},
			"each": {"key": "{http.request.remote.host}", "max_events": 10, "window": "1h"},
			"free": {"max_events": 1, "window": "1h", "cost": 0},
			"tried": {"max_events": 5, "window": "1h", "enforce": 0}
		}}`)
		for _, client := range []string{"203.0.113.7:1", "203.0.113.8:1"} {
			for range 12 {
				caddytest.Serve(t, h, client)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		got := caddytest.Scrape(t, ctx)
		for zone, want := range map[string]float64{"all": 0, "each": 2 * 3, "free": 0, "tried": 2} {
			if n := got["near_limit_requests_total{zone="+zone+"}"]; n != want {
				t.Errorf("zone %s: %v near the limit, want %v", zone, n, want)
			}
		}
		h.Cleanup()
		for _, line := range logs.All() {
			if line.ContextMap()["zone"] == "each" && line.Message != "rate limit exceeded" && line.Message != "rate limit exceeded again" {
				t.Errorf("logged %q", line.Message)
			}
		}
	})
}
