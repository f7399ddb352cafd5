package caddyratelimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// flaky is a store that sometimes gives no answer.
type flaky struct {
	*memorystore.Store
	down *atomic.Bool
}

func (s flaky) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if s.down.Load() {
		return errNoAnswer
	}
	return s.Store.Take(ctx, checks, decisions)
}

// eventQueue passes on events, which come from goroutines.
type eventQueue chan caddy.Event

func (q eventQueue) Handle(_ context.Context, e caddy.Event) error {
	q <- e
	return nil
}

// TestStoreStateEvent: there is one event when the store stops answering, and one when it is
// back, however many handlers use it.
func TestStoreStateEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, events, down := caddytest.Config(t), make(eventQueue, 100), new(atomic.Bool)
		caddytest.Subscribe(t, ctx, "rate_limit_store_state", events)
		kept := caddytest.NewStore(t, func() (store.Store, error) {
			s, err := memorystore.New(memorystore.Options{})
			return flaky{s, down}, err
		})
		var handlers []caddytest.Handler
		for _, zone := range []string{"one", "other"} {
			handlers = append(handlers, caddytest.LoadInto(t, ctx, `{`+kept.Option()+`"rate_limits": {"`+zone+`": {"max_events": 3, "window": "1h"}}}`))
		}
		serve := func() {
			for range 100 {
				for _, h := range handlers {
					caddytest.Serve(t, h, "203.0.113.7:1")
				}
			}
			synctest.Wait()
		}
		down.Store(true)
		serve()
		failed := <-events
		down.Store(false)
		time.Sleep(2 * time.Second) // a store is back when it has answered for a while
		serve()
		back := <-events
		if failed.Data["state"] != "down" || failed.Data["error"] != "no answer" || failed.Data["store"] != "store test" || back.Data["state"] != "up" {
			t.Errorf("heard %v and %v", failed.Data, back.Data)
		}
		if len(events) > 0 {
			t.Errorf("heard %d more", len(events))
		}
	})
}
