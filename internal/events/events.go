// Package events emits events that other modules of Caddy subscribe to.
package events

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// Events emits events through Caddy's events app. Subscribers are called at once, while the
// request waits, so the number of events must be bounded.
type Events struct {
	ctx caddy.Context
	app *caddyevents.App

	*started
}

// New finds the events app of a config.
func New(ctx caddy.Context) (Events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return Events{}, fmt.Errorf("getting events app: %w", err)
	}
	e := Events{ctx, app.(*caddyevents.App), new(started)}
	if err := e.app.On("started", e.started); err != nil {
		e.all.Store(true) // the app has started before
	}
	return e, nil
}

// started knows whether all apps have started. Caddy starts them in any order and adds subscribers as the events app starts, so
// subscribers cannot be looked up before.
type started struct{ all atomic.Bool }

// Handle implements [caddyevents.Handler].
func (s *started) Handle(context.Context, caddy.Event) error {
	s.all.Store(true)
	return nil
}

// Wanted reports whether an event has subscribers.
func (e *Events) Wanted(name string) bool {
	return e.app != nil && e.all.Load() && e.app.ShouldEmit(name)
}

// Emit calls the subscribers, unless they are gone: a request may outlive its config.
func (e *Events) Emit(name string, data map[string]any) {
	if e.ctx.Err() == nil {
		e.app.Emit(e.ctx, name, data)
	}
}
