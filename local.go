package caddyratelimit

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// localBackend is the memory that stands in for a store while it does not answer or is full: one
// for each store, for as long as a handler of some config may need it.
type localBackend struct {
	standsFor string // identity of the store
}

// String is what errors call it.
func (*localBackend) String() string { return "store memory" }

// Identity implements [store.Backend].
func (b *localBackend) Identity() (string, error) { return "local:" + b.standsFor, nil }

// Open implements [store.Backend].
func (*localBackend) Open() (store.Store, error) {
	return memorystore.New(memorystore.Options{Logger: logging.Logger})
}

// localize reduces the attempt to the zones that decide locally, each with this Caddy's
// share of its limit: all of them, or those whose on_store_error says so. The others have let
// the request pass, which took so long.
func (a *attempt) localize(instances int, took time.Duration, all bool) {
	a.keep(func(i int) bool {
		local := all || a.zones[i].onStoreError == localOnError
		if !local {
			a.note(i, outcome.FailedOpen, took)
		}
		return local
	})
	for i := range a.checks {
		c := &a.checks[i]
		c.Rule = c.Rule.Share(instances)
	}
}
