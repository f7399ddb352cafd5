package caddyratelimit_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
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
			"never": {"charge_on_response": {"status_code": [401]}, "max_events": 5, "window": "1m"},
			"some": {"charge_on_response": {"status_code": [200]}, "max_events": 500, "window": "1m"}}}`)
		caddytest.Run(t, ctx)
		for range 100 {
			caddytest.Ask(t, h, "/")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const message = "none of 100 responses was charged, because none matches charge on_response; name a status or a header of the responses that should be charged; the last response had status 200"
		if lines := logs.FilterLevelExact(zapcore.WarnLevel).All(); len(lines) != 1 || lines[0].Message != message || lines[0].ContextMap()["zone"] != "never" {
			t.Errorf("%v", lines)
		}
	})
}

// TestInstancesBelowTheFleet: if the config says fewer instances than share the store, the log, doctor and
// the admin API say so, and without the option nothing is wrong.
func TestInstancesBelowTheFleet(t *testing.T) {
	server := redistest.Start(t)
	// Two other instances, which stay.
	for _, name := range []string{"other", "third"} {
		server.Admin().ZAdd(t.Context(), "rl:instances", redis.Z{Score: 9e14, Member: name})
	}
	const fix = "remove instances, so that the shares follow the fleet, or set it to 3"
	for option, want := range map[string]bool{`"instances": 2,`: true, `"instances": 3,`: false, ``: false} {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"on_store_error": "local", `+option+` "store": {"backend": "redis", "address": ["`+server.Addr()+`"]},
			"rate_limits": {"all": {"max_events": 1000, "window": "1m"}}}`)
		caddytest.Run(t, ctx)
		caddytest.Ask(t, h, "/")
		var stores []struct{ Instances int }
		patient.Until(t, "the fleet to be counted", func() bool {
			return json.Unmarshal([]byte(caddytest.Admin(t, http.MethodGet, "stores", "")), &stores) == nil && stores[0].Instances == 3
		})
		if diagnosis := caddytest.Admin(t, http.MethodGet, "doctor", ""); strings.Contains(diagnosis, fix) != want {
			t.Errorf("%s: %s", option, diagnosis)
		}
		if want {
			patient.Until(t, "a line in the log", func() bool {
				return logs.FilterMessage("instances is 2, but 3 instances share the store: while it does not answer, they admit 3/2 of each limit; "+fix).Len() == 1
			})
		}
	}
}
