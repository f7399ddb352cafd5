package caddyratelimit

import (
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// localBackend is the memory that stands in for a store while it does not answer: one
// for each store, for as long as a handler of some config may need it.
type localBackend struct {
	MemoryStore
	standsFor string // identity of the store
}

// Identity implements [Backend].
func (b *localBackend) Identity() (string, error) { return "local:" + b.standsFor, nil }

// Open implements [Backend].
func (*localBackend) Open() (store.Store, error) {
	return memorystore.New(memorystore.Options{Logger: logger})
}

// localize reduces the attempt to the zones that decide locally, each with this Caddy's
// share of its limit.
func (a *attempt) localize(instances int) {
	n, firm := 0, 0
	for i, z := range a.zones {
		if z.onStoreError != localOnError {
			a.note(i, wasFailedOpen, untimed)
			continue
		}
		c := a.checks[i]
		share := c.Rule.Share(instances)
		if whole := quota(c.Rule.Limit()); c.Cost <= whole {
			c.Cost = min(c.Cost, quota(share.Limit())) // what fits the whole takes all of the share
		}
		c.Rule = share
		a.zones[n], a.grants[n], a.checks[n] = z, a.grants[i], c
		n++
		if i < a.firm {
			firm++
		}
	}
	clear(a.zones[n:])
	clear(a.grants[n:])
	clear(a.checks[n:])
	a.zones, a.grants, a.checks, a.decisions, a.firm = a.zones[:n], a.grants[:n], a.checks[:n], a.decisions[:n], firm
}

// quota is what a limit lets one client have at once.
func quota(l algorithms.Limit) int64 {
	if l.Burst > 0 && l.Events > 0 {
		return l.Burst
	}
	return l.Events
}
