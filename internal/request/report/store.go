package report

import "github.com/seed-161337e5/caddyratelimit/internal/events"

const eventStoreState = "rate_limit_store_state"

// StoreState emits an event when a store has stopped answering, with the cause, or answers again,
// with a nil cause. The on_store_error are those of all zones with the store. It does not wait for subscribers,
// because a request may have noticed it. A store may be found not to answer while the apps start. Then the event is
// emitted when they have.
func StoreState(e *events.Events, store, onStoreError string, cause error) {
	e.AfterStart(func() {
		if !e.Wanted(eventStoreState) {
			return
		}
		data := map[string]any{"store": store, "state": "up", "on_store_error": onStoreError}
		if cause != nil {
			data["state"], data["error"] = "down", cause.Error()
		}
		go e.Emit(eventStoreState, data)
	})
}
