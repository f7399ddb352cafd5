//go:build deep

package caddyratelimit_test

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

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

// TestReloadsLeaveHeapFlat: no object is left of a config. It finds what [TestNothingOutlivesConfig] does not look at.
func TestReloadsLeaveHeapFlat(t *testing.T) {
	redis := "store redis {\naddress " + redistest.Start(t).Addr() + "\nrequire\ntimeout 10s\n}\n"
	site := mostOptions + adaptiveZones + "\nroute /redis {\nrate_limit {\n" + redis + "zone shared {\nrate 10/1h\noverrides\n}\n}\n}"
	address := caddytest.FreeAddress(t)
	objects := func(reloads int) int64 {
		for range reloads {
			if err := loadWith(t, address, site, unregistered); err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC() // twice, for what was in a pool
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	const reloads = 100
	objects(20)
	before := objects(0)
	// What the last config has in the background may come and go, once.
	patient.Until(t, "the heap to be as it was", func() bool { return objects(reloads)-before < reloads })
}
