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
