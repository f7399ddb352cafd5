package report

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestStoreStateBeforeStart: the event of a store that is found not to answer while the apps start is
// emitted when they have started.
func TestStoreStateBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := caddytest.Config(t)
		e, err := events.New(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l := caddytest.Listen(t, ctx, eventStoreState)
		StoreState(&e, "redis", "allow", errors.New("no answer"))
		synctest.Wait()
		if len(l.Events) > 0 {
			t.Errorf("%d events before the start", len(l.Events))
		}
		if err := e.Handle(ctx, caddy.Event{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(l.Events) != 1 || l.Events[0].Data["state"] != "down" {
			t.Errorf("after the start the events are %v", l.Events)
		}
	})
}
