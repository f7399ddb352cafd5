package report

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
)

// The events that handlers emit.
const (
	eventExceeded   = "rate_limit_exceeded"
	eventRejected   = "rate_limit_rejected"
	eventBanned     = "rate_limit_banned"
	eventNearLimit  = "rate_limit_near_limit"
	eventStoreState = "rate_limit_store_state"
)

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
		data["reason"], data["status"] = f.Err.Error(), f.Status
	}
	if p.LogKey {
		data["key"] = logging.Key(f.Key)
	}
	return data
}

// StoreState emits an event when a store has stopped answering, with the cause, or answers again,
// with a nil cause. The on_store_error are those of all zones with the store. It does not wait for subscribers, because a request may have noticed it. A store
// may be found not to answer while the apps start. Then the event is emitted when they have.
func StoreState(e *events.Events, store, onStoreError string, cause error) {
	e.AfterStart(func() { storeState(e, store, onStoreError, cause) })
}

func storeState(e *events.Events, store, onStoreError string, cause error) {
	if !e.Wanted(eventStoreState) {
		return
	}
	data := map[string]any{"store": store, "state": "up", "on_store_error": onStoreError}
	if cause != nil {
		data["state"], data["error"] = "down", cause.Error()
	}
	go e.Emit(eventStoreState, data)
}
