// Package events emits events that other modules of Caddy subscribe to.
package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// Events emits events through Caddy's events app. Subscribers are called at once, while the
// request waits, so the number of events must be bounded.
type Events struct {
	ctx caddy.Context
	app *caddyevents.App

	*start
}

// New finds the events app of a config.
func New(ctx caddy.Context) (Events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return Events{}, fmt.Errorf("getting events app: %w", err)
	}
	e := Events{ctx, app.(*caddyevents.App), new(start)}
	if err := e.app.On("started", e.start); err != nil {
		e.over.Store(true) // it has started before
	}
	return e, nil
}

// start tells when all apps have started. Caddy starts them in any order and adds subscribers as the events app starts, so
// subscribers cannot be looked up before.
type start struct {
	over atomic.Bool

	mu      sync.Mutex
	waiting []func() // what is to be done then
}

// Handle implements [caddyevents.Handler].
func (s *start) Handle(context.Context, caddy.Event) error {
	s.mu.Lock()
	waiting := s.waiting
	s.over.Store(true)
	s.waiting = nil
	s.mu.Unlock()
	for _, do := range waiting {
		do()
	}
	return nil
}

// after does something when all apps have started.
func (s *start) after(do func()) {
	s.mu.Lock()
	if !s.over.Load() {
		s.waiting = append(s.waiting, do)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	do()
}

// AfterStart does something when all apps of the config have started.
func (e *Events) AfterStart(do func()) { e.after(do) }

// Wanted reports whether an event has subscribers.
func (e *Events) Wanted(name string) bool {
	return e.app != nil && e.over.Load() && e.app.ShouldEmit(name)
}

// Emit calls the subscribers, unless they are gone: a request may outlive its config.
func (e *Events) Emit(name string, data map[string]any) {
	if e.ctx.Err() == nil {
		e.app.Emit(e.ctx, name, data)
	}
}
