package caddyratelimit

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// The events that handlers emit.
const (
	eventExceeded   = "rate_limit_exceeded"
	eventRejected   = "rate_limit_rejected"
	eventBanned     = "rate_limit_banned"
	eventStoreState = "rate_limit_store_state"
)

// events emits through Caddy's app of that name. Subscribers are called at once, while
// the request waits, so nothing is emitted at the rate of the requests.
type events struct {
	ctx caddy.Context
	app *caddyevents.App

	// started is set when all apps have started. Caddy starts them in any order and adds
	// subscribers as the events app starts, so nobody may look at them before.
	started *atomic.Bool
}

func newEvents(ctx caddy.Context) (events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return events{}, fmt.Errorf("getting events app: %w", err)
	}
	e := events{ctx, app.(*caddyevents.App), new(atomic.Bool)}
	if err := e.app.On("started", setter{e.started}); err != nil {
		e.started.Store(true) // it has started before
	}
	return e, nil
}

// setter sets a flag when it hears of an event.
type setter struct{ flag *atomic.Bool }

// Handle implements [caddyevents.Handler].
func (s setter) Handle(context.Context, caddy.Event) error {
	s.flag.Store(true)
	return nil
}

// wanted tells whether anybody would notice.
func (e *events) wanted(name string) bool {
	return e.app != nil && e.started.Load() && e.app.ShouldEmit(name)
}

// emit tells the subscribers, unless they are gone: a request may outlive its config.
func (e *events) emit(name string, data map[string]any) {
	if e.ctx.Err() == nil {
		e.app.Emit(e.ctx, name, data)
	}
}

// refused is what an event tells of a refusal.
func (h *Handler) refused(r *http.Request, f *refusal) map[string]any {
	data := map[string]any{"zone": f.zone.Name, "remote_ip": clientip.Remote(r), "client_ip": clientip.Client(r)}
	if f.tellsWait() {
		data["wait"] = f.grant.Wait(&f.decision)
	}
	if f.grant != nil {
		data["limit"] = f.decision.Quota
	} else {
		data["reason"], data["status"] = f.err.Error(), f.status
	}
	if h.logsKey() {
		data["key"] = clipped(f.key)
	}
	return data
}

// tellBans tells of the bans that begin with a request, also in zones that it does not
// speak of otherwise. Where the zone is a dry run none holds.
func (h *Handler) tellBans(r *http.Request, a *attempt) {
	for i := range a.firm {
		if !a.decisions[i].BanBegins || !h.events.wanted(eventBanned) {
			continue
		}
		f := h.refusal(a, i)
		if f.begins = true; !h.journal.first(&f) {
			continue
		}
		data := h.refused(r, &f)
		data["until"] = time.UnixMicro(f.decision.At).Add(f.grant.Wait(&f.decision)).UTC()
		h.events.emit(eventBanned, data)
	}
}

// storeState tells that the store has stopped answering (and why), or answers again. No
// request waits for the subscribers, for it may be any that notices.
func (h *Handler) storeState(cause error) {
	if !h.events.wanted(eventStoreState) {
		return
	}
	data := map[string]any{"store": pool.Describe(h.store.Backend), "state": "up", "on_store_error": h.OnStoreError}
	if cause != nil {
		data["state"], data["error"] = "down", cause.Error()
	}
	go h.events.emit(eventStoreState, data)
}
