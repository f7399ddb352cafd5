package caddyratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestUnmetZoneIsLogged: a zone that no request meets, although many come to it, is logged once, after some
// minutes; a zone that requests meet is not.
func TestUnmetZoneIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"rate_limits": {
			"login": {"match": [{"path": ["/login"]}], "max_events": 5, "window": "1m"}, "all": {"max_events": 1000, "window": "1m"}}}`)
		caddytest.Run(t, ctx)
		for range 100 {
			caddytest.Ask(t, h, "/x/login")
		}
		const message = "it has matched none of the 100 requests that have reached it; correct its match, or its route; 'caddy rate-limit explain' shows what a request meets"
		for want := range 2 {
			time.Sleep(time.Minute + time.Duration(want)*10*time.Minute)
			synctest.Wait()
			if lines := logs.FilterMessage(message).All(); len(lines) != want || want == 1 && lines[0].ContextMap()["zone"] != "login" {
				t.Errorf("want %d: %v", want, logs.All())
			}
		}
	})
}

// TestWrongZonesAreLogged: a zone that charges none of a hundred responses is logged once, within a minute.
func TestWrongZonesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"rate_limits": {
			"never": {"charge": {"status": ["401"]}, "max_events": 5, "window": "1m"},
			"some": {"charge": {"status": ["200"]}, "max_events": 500, "window": "1m"}}}`)
		caddytest.Run(t, ctx)
		for range 100 {
			caddytest.Ask(t, h, "/")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const message = "none of 100 responses was charged, because charge matches none; the last one had status 200; name a status or a header of the responses that should be charged"
		if lines := logs.FilterLevelExact(zapcore.WarnLevel).All(); len(lines) != 1 || lines[0].Message != message || lines[0].ContextMap()["zone"] != "never" {
			t.Errorf("%v", lines)
		}
	})
}
