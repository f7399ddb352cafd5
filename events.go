package caddyratelimit

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// The events that handlers emit.
const (
	eventExceeded   = "rate_limit_exceeded"
	eventRejected   = "rate_limit_rejected"
	eventStoreState = "rate_limit_store_state"
)

// events emits through Caddy's app of that name. Subscribers are called at once, while
// the request waits, so nothing is emitted at the rate of the requests.
type events struct {
	ctx caddy.Context
	app *caddyevents.App
}

func newEvents(ctx caddy.Context) (events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return events{}, fmt.Errorf("getting events app: %w", err)
	}
	return events{ctx, app.(*caddyevents.App)}, nil
}

// wanted tells whether anybody would notice.
func (e *events) wanted(name string) bool { return e.app != nil && e.app.ShouldEmit(name) }

// emit tells the subscribers, unless they are gone: a request may outlive its config.
func (e *events) emit(name string, data map[string]any) {
	if e.ctx.Err() == nil {
		e.app.Emit(e.ctx, name, data)
	}
}

// storeState tells that the store has stopped answering (and why), or answers again. No
// request waits for the subscribers, for it may be any that notices.
func (h *Handler) storeState(cause error) {
	if !h.events.wanted(eventStoreState) {
		return
	}
	data := map[string]any{"store": describe(h.store.backend), "state": "up", "on_store_error": h.OnStoreError}
	if cause != nil {
		data["state"], data["error"] = "down", cause.Error()
	}
	go h.events.emit(eventStoreState, data)
}
