package store

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// RenewInterval is how often a store should call [Leases.Due]. It is well below the shortest
// lease.
const RenewInterval = 250 * time.Millisecond

// Leases remembers the leases that this process has in a store, so that the store can renew
// them in time: the store calls Due, and renews what it returns. Leases may be used by many
// goroutines at once.
type Leases struct {
	// Now is the store's clock. Nil means the machine's.
	Now func() time.Time

	mu   sync.Mutex
	kept map[string]lease
}

type lease struct {
	check Check
	due   time.Time
}

// Add adds a charge that was just made. It does nothing if the algorithm is not an
// [algorithms.Leaser].
func (h *Leases) Add(c *Check) {
	if _, ok := c.Rule.Algorithm().(algorithms.Leaser); !ok || c.Cost == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = make(map[string]lease)
	}
	now := time.Now
	if h.Now != nil {
		now = h.Now
	}
	h.keep(c, now())
}

// keep keeps a charge that is made or renewed now. The lock is held.
func (h *Leases) keep(c *Check, now time.Time) {
	leaser := c.Rule.Algorithm().(algorithms.Leaser)
	h.kept[c.LeaseID] = lease{*c, now.Add(leaser.Renewal(c.Rule.At(0).Params))}
}

// Remove removes a charge that is given back.
func (h *Leases) Remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.kept, id)
}

// Has reports whether a charge is kept.
func (h *Leases) Has(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.kept[id]
	return ok
}

// All returns the charges that are kept.
func (h *Leases) All() []Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Check, 0, len(h.kept))
	for _, one := range h.kept {
		all = append(all, one.check)
	}
	byName(all)
	return all
}

// ByZone returns how many charges are kept in each zone.
func (h *Leases) ByZone() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	zones := make(map[string]int64)
	for _, one := range h.kept {
		zones[one.check.Rule.Zone()]++
	}
	return zones
}

// Due returns the charges to renew now, and assumes that the caller renews them. A charge may be
// given back meanwhile, and must not be made again by its renewal: see [Leases.Has].
func (h *Leases) Due(now time.Time) (due []Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.kept {
		if one.due.After(now) && one.due.Round(0).After(now.Round(0)) {
			continue // by both clocks: the monotonic one stands still while the machine is suspended
		}
		due = append(due, one.check)
		h.keep(&one.check, now)
	}
	byName(due)
	return due
}

// byName puts charges in an order that does not depend on that of a map: what a store is sent is then the same each time.
func byName(all []Check) {
	slices.SortFunc(all, func(a, b Check) int { return cmp.Compare(a.LeaseID, b.LeaseID) })
}
