//go:build deep

package caddyratelimit_test

import (
	"runtime"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestReloadsLeaveHeapFlat: no object is left of a config. It finds what [TestNothingOutlivesConfig] does not look at.
func TestReloadsLeaveHeapFlat(t *testing.T) {
	redis := "store redis {\naddress " + redistest.Start(t).Addr() + "\ntimeout 10s\n}\n"
	site := mostOptions + adaptiveLimits + "\nroute /redis {\nrate_limit {\n" + redis + "zone shared {\nrate 10/1h\noverrides\n}\n}\n}"
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
	last := objects(reloads)
	// What is kept for later configs grows for a while. Of configs, each would leave some.
	patient.Until(t, "the heap to stay as it was", func() bool {
		before := last
		last = objects(reloads)
		return last-before < reloads
	})
}
