package caddyratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func checkOnStoreError(policy string) error {
	switch policy {
	case zone.AllowOnError, zone.DenyOnError, zone.LocalOnError:
		return nil
	}
	return fmt.Errorf("on_store_error must be allow, deny or local, got %q", policy)
}

// maxInstances bounds the option, well above any fleet.
const maxInstances = 100_000

// instances is how many Caddys share a limit while they count apart: as many as the
// store has last seen, unless the config knows better.
func (h *Handler) instances() int {
	if h.Instances != nil {
		return *h.Instances
	}
	if fleet, ok := h.store.Store.Store.(store.Fleet); ok {
		return fleet.Instances()
	}
	return 1
}

// ask has a store decide. If it may pass and holds something, it holds the store too.
func (h *Handler) ask(l *pool.Ref, a *attempt, r *http.Request, p *patience) (*hold, error) {
	u, err := l.Begin()
	if err != nil {
		return nil, err
	}
	held, err := h.pass(a, u, r, p)
	if held == nil {
		u.End()
	}
	return held, err
}

// fallBack decides a request that the store did not, each zone as it says: one that
// denies, and is no dry run, is enough to deny, those that decide locally do so together,
// the others let it pass. If the store answers and is full, all decide locally: the store is
// there for everybody else, and clients with a new key can be neither all refused nor all let
// through because of it. What is left of the attempt are the zones that have decided.
func (h *Handler) fallBack(a *attempt, r *http.Request, p *patience, start time.Duration, cause error) (*hold, error) {
	full := errors.Is(cause, store.ErrFull) && h.local != nil
	for _, z := range a.zones[:a.firm] {
		if z.OnStoreError == zone.DenyOnError && !full {
			return nil, errNoStore
		}
	}
	a.localize(h.instances(), h.since(start), full)
	if len(a.zones) == 0 {
		return nil, nil
	}
	return h.ask(h.local, a, r, p)
}

var errNoStore = errors.New("rate limit store does not answer")

// deny answers for a store that does not: the fault is ours, so it is no 429.
func (h *Handler) deny(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Retry-After", "1")
	return h.end(w, r, http.StatusServiceUnavailable, errNoStore)
}

// detached is a request's context that does not end when the client leaves.
type detached struct{ context.Context }

func (detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (detached) Done() <-chan struct{}                   { return nil }
func (detached) Err() error                              { return nil }
