package report

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
)

// The events that handlers emit.
const (
	eventExceeded   = "rate_limit_exceeded"
	eventRejected   = "rate_limit_rejected"
	eventOverloaded = "rate_limit_overloaded"
	eventBanned     = "rate_limit_banned"
	eventNearLimit  = "rate_limit_near_limit"
	eventStoreState = "rate_limit_store_state"
)

// Events emits events through Caddy's events app. Subscribers are called at once, while the
// request waits, so the number of events must be bounded.
type Events struct {
	ctx caddy.Context
	app *caddyevents.App

	// started is set when all apps have started. Caddy starts them in any order and adds
	// subscribers as the events app starts, so subscribers cannot be looked up before.
	started *start
}

// NewEvents finds the events app of a config.
func NewEvents(ctx caddy.Context) (Events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return Events{}, fmt.Errorf("getting events app: %w", err)
	}
	e := Events{ctx, app.(*caddyevents.App), new(start)}
	if err := e.app.On("started", e.started); err != nil {
		e.started.over.Store(true) // it has started before
	}
	return e, nil
}

// start tells when all apps have started.
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
func (e *Events) AfterStart(do func()) { e.started.after(do) }

// wanted reports whether an event has subscribers.
func (e *Events) wanted(name string) bool {
	return e.app != nil && e.started.over.Load() && e.app.ShouldEmit(name)
}

// emit calls the subscribers, unless they are gone: a request may outlive its config.
func (e *Events) emit(name string, data map[string]any) {
	if e.ctx.Err() == nil {
		e.app.Emit(e.ctx, name, data)
	}
}

// eventData is the data of an event about a refusal.
func (p *Reporter) eventData(r *http.Request, f *limiter.Refusal) map[string]any {
	data := map[string]any{"zone": f.Zone.Name, "remote_ip": clientip.Remote(r), "client_ip": clientip.Client(r)}
	if f.NeverPasses() {
		data["cost"] = f.Cost
	} else if knowsWait(f) {
		data["wait"] = f.Waits().Told
	}
	if f.Policy != nil {
		data["limit"] = f.Decision.Quota
	} else {
		data["reason"] = f.Err.Error()
		if f.Status != 0 { // else that of the handler
			data["status"] = f.Status
		}
	}
	if p.LogKey {
		data["key"] = logging.Key(f.Key)
	}
	return data
}

// StoreState emits an event when a store has stopped answering, with the cause, or answers again,
// with a nil cause. The on_store_error are those of all zones with the store. It does not wait for subscribers, because a request may have noticed it. A store
// may be found not to answer while the apps start. Then the event is emitted when they have.
func (e *Events) StoreState(store, onStoreError string, cause error) {
	e.AfterStart(func() { e.storeState(store, onStoreError, cause) })
}

func (e *Events) storeState(store, onStoreError string, cause error) {
	if !e.wanted(eventStoreState) {
		return
	}
	data := map[string]any{"store": store, "state": "up", "on_store_error": onStoreError}
	if cause != nil {
		data["state"], data["error"] = "down", cause.Error()
	}
	go e.emit(eventStoreState, data)
}
