package caddyratelimit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
)

// listener keeps the events that it hears.
type listener struct{ heard []caddy.Event }

func (l *listener) Handle(_ context.Context, e caddy.Event) error {
	l.heard = append(l.heard, e)
	return nil
}

// listen subscribes to an event of a config.
func listen(t *testing.T, ctx caddy.Context, name string) *listener {
	t.Helper()
	app, err := ctx.App("events")
	if err != nil {
		t.Fatal(err)
	}
	l := new(listener)
	if err := app.(*caddyevents.App).On(name, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestExceededEvent: subscribers hear of a key once in a window, whatever is logged.
func TestExceededEvent(t *testing.T) {
	for _, c := range []struct {
		options string
		key     any
	}{
		{`"log": "off", `, nil}, {`"log": "all", "log_key": true, `, "0"}, {`"log": "first", `, nil},
	} {
		ctx := config(t)
		l := listen(t, ctx, "rate_limit_exceeded")
		h, _ := flooded(t, ctx, c.options)
		flood(t, h, 3, 100)
		if len(l.heard) != 3 {
			t.Fatalf("%s: %d events, want one for each of 3 keys", c.options, len(l.heard))
		}
		data := l.heard[0].Data
		if data["zone"] != "flooded" || data["wait"] != time.Hour || data["remote_ip"] != "203.0.113.7" || data["client_ip"] != "203.0.113.7" ||
			data["limit"] != int64(0) || data["key"] != c.key {
			t.Errorf("%s: %v", c.options, data)
		}
		if origin := l.heard[0].Origin().CaddyModule().ID; origin != "http.handlers.rate_limit" {
			t.Errorf("the event comes from %s", origin)
		}
	}
}

// heard waits for events, which come from goroutines.
type heard chan caddy.Event

func (h heard) Handle(_ context.Context, e caddy.Event) error {
	h <- e
	return nil
}

// TestStoreStateEvent: one when the store stops answering, one when it is back, however
// many handlers use it.
func TestStoreStateEvent(t *testing.T) {
	ctx := config(t)
	app, err := ctx.App("events")
	if err != nil {
		t.Fatal(err)
	}
	h := make(heard, 100)
	if err := app.(*caddyevents.App).On("rate_limit_store_state", h); err != nil {
		t.Fatal(err)
	}
	var s *health
	for _, zone := range []string{"one", "other"} {
		s = provision(t, ctx, `{"rate_limits": {"`+zone+`": {"max_events": 3, "window": "1h"}}}`).store.shared.health
	}
	for range 100 {
		s.report(errors.New("no answer"), zap.NewNop())
	}
	down := <-h
	s.lastError.Add(-2 * int64(quiet))
	for range 100 {
		s.report(nil, zap.NewNop())
	}
	up := <-h
	if down.Data["state"] != "down" || down.Data["error"] != "no answer" || down.Data["store"] != "store memory" || up.Data["state"] != "up" {
		t.Errorf("heard %v and %v", down.Data, up.Data)
	}
	if len(h) > 0 {
		t.Errorf("heard %d more", len(h))
	}
}
