package pool_test

import (
	"testing"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestLocalStores: each store has one local store, which is closed after the last handler that may
// need it. Its counters survive a reload.
func TestLocalStores(t *testing.T) {
	before, _ := pool.InUse()
	expect := func(when string, want int) {
		t.Helper()
		if open, _ := pool.InUse(); open != before+want {
			t.Errorf("%s: %d stores are open, want %d", when, open-before, want)
		}
	}
	never := caddytest.Load(t, `{`+caddytest.KeepMemory(t, memorystore.Options{}).Option()+`"rate_limits": {"never local": {"max_events": 2, "window": "1h", "on_store_error": "deny"}}}`)
	expect("a handler that never decides locally", 1)
	caddytest.CleanUp(t, never)

	text := `{` + caddytest.Failing(t, caddytest.ErrNoAnswer).Option() + `"on_store_error": "local", "rate_limits": {"pooled": {"max_events": 2, "window": "1h"}}}`
	old := caddytest.Load(t, text)
	expect("a store and its local store", 2)
	caddytest.Serve(t, old, "203.0.113.7:1")
	reloaded := caddytest.Load(t, text)
	caddytest.CleanUp(t, old)
	expect("after a reload", 2)
	for i, want := range []int{200, 429} {
		if status, _ := caddytest.Serve(t, reloaded, "203.0.113.7:1"); status != want {
			t.Errorf("request %d after the reload: %d, want %d", i+1, status, want)
		}
	}
	caddytest.CleanUp(t, reloaded)
	expect("after the last handler", 0)
}
