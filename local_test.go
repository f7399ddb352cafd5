package caddyratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// heldRequest sends a request that lives until the context ends, if it may pass.
func heldRequest(t *testing.T, ctx context.Context, h caddytest.Handler) (passed bool) {
	t.Helper()
	entered, left := make(chan bool, 2), make(chan struct{})
	go func() {
		defer close(left)
		w := httptest.NewRecorder()
		_ = h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			entered <- true
			<-ctx.Done()
			return nil
		}))
		entered <- false // too late, if it has passed
	}()
	passed = <-entered
	t.Cleanup(func() { <-left })
	return passed
}

// TestSlotsGoBackWhereTheyCameFrom: slots that Redis lent before it froze go back to it
// when it thaws; those that were lent locally meanwhile are free the next time.
func TestSlotsGoBackWhereTheyCameFrom(t *testing.T) {
	server := redistest.Start(t)
	h := caddytest.Load(t, fmt.Sprintf(`{
		"on_store_error": "local", "instances": 2,
		"store": {"backend": "redis", "address": [%q], "timeout": "3s"},
		"rate_limits": {"slots": {"algorithm": "concurrency", "max_events": 4}}
	}`, server.Addr()))
	slots := func() int64 { return server.Admin().ZCard(context.Background(), "rl:{*}:slots:concurrency.2").Val() }
	during := func(ctx context.Context, n int) (passed int) { // at once, so that they wait for Redis together
		answers := make(chan bool, n)
		for range n {
			go func() { answers <- heldRequest(t, ctx, h) }()
		}
		for range n {
			if <-answers {
				passed++
			}
		}
		return passed
	}

	early, endEarly := context.WithCancel(context.Background())
	defer endEarly()
	if n := during(early, 5); n != 4 || slots() != 4 {
		t.Fatalf("%d passed and %d hold a slot in Redis, want 4 and 4", n, slots())
	}
	for outage := range 2 { // the second finds all local slots free again
		server.Freeze()
		local, endLocal := context.WithCancel(context.Background())
		defer endLocal()
		if n := during(local, 8); n != 2 {
			t.Fatalf("outage %d: %d passed, want half of 4", outage+1, n)
		}
		endLocal()
		if outage == 0 {
			endEarly()
		}
		server.Thaw()
		// What was sent while Redis was frozen is carried out now, and then given back: long
		// before the leases end by themselves.
		free := 0
		patient.Until(t, "the slots in Redis", func() bool {
			time.Sleep(50 * time.Millisecond)
			if free++; slots() != 0 {
				free = 0
			}
			return free == 10
		})
	}
}

// TestShareOfACost: a cost that does not fit the share is refused, or ten Caddys would
// admit four times the limit together.
func TestShareOfACost(t *testing.T) {
	h := caddytest.Load(t, `{`+caddytest.Failing(t, errNoAnswer).Option()+`"on_store_error": "local", "instances": 10, "rate_limits": {
		"costly": {"max_events": 50, "window": "1h", "cost": "{http.request.header.Cost}"}
	}}`)
	for i, c := range []struct {
		cost string
		want int
	}{{"20", 429}, {"6", 429}, {"5", 200}, {"1", 429}} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Cost", c.cost)
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil || w.Code != c.want {
			t.Errorf("request %d of cost %s: %d, %v; want %d", i+1, c.cost, w.Code, err, c.want)
		}
	}
}

// TestLocalStoresArePooled: there is one for each store, closed with the last handler that
// may need it; and its counters survive a reload.
func TestLocalStoresArePooled(t *testing.T) {
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

	text := `{` + caddytest.Failing(t, errNoAnswer).Option() + `"on_store_error": "local", "rate_limits": {"pooled": {"max_events": 2, "window": "1h"}}}`
	old := caddytest.Load(t, text)
	expect("a store and the one that stands in for it", 2)
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
	expect("in the end", 0)
}
