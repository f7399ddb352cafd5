package report_test

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

// flakyStore is a store that does not answer while it is down.
type flakyStore struct {
	*memorystore.Store
	down *atomic.Bool
}

func (s flakyStore) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if s.down.Load() {
		return caddytest.ErrNoAnswer
	}
	return s.Store.Take(ctx, checks, decisions)
}

// eventQueue is an event handler that puts the events into a channel, because they come from
// goroutines.
type eventQueue chan caddy.Event

func (q eventQueue) Handle(_ context.Context, e caddy.Event) error {
	q <- e
	return nil
}

// TestStoreStateEvent: one event is emitted when the store stops answering, and one when it answers
// again, however many handlers use it.
func TestStoreStateEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, events, down := caddytest.Config(t), make(eventQueue, 100), new(atomic.Bool)
		caddytest.Subscribe(t, ctx, "rate_limit_store_state", events)
		flaky := caddytest.NewStore(t, func() (store.Store, error) {
			s, err := memorystore.New(memorystore.Options{})
			return flakyStore{s, down}, err
		})
		var handlers []caddytest.Handler
		for _, zone := range []string{"one", "other"} {
			handlers = append(handlers, caddytest.LoadInto(t, ctx, `{`+flaky.Option()+`"rate_limits": {"`+zone+`": {"max_events": 3, "window": "1h"}}}`))
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
		wentDown := <-events
		down.Store(false)
		time.Sleep(2 * time.Second) // a store counts as up when it has answered for a while
		serve()
		cameUp := <-events
		if wentDown.Data["state"] != "down" || wentDown.Data["error"] != "no answer" || wentDown.Data["store"] != "store test" || cameUp.Data["state"] != "up" {
			t.Errorf("the events are %v and %v", wentDown.Data, cameUp.Data)
		}
		if len(events) > 0 {
			t.Errorf("%d more events, want none", len(events))
		}
	})
}
