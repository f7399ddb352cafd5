package store

import (
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// RenewInterval is how often a store should call [Holds.Due]. It is well below the shortest
// lease.
const RenewInterval = 250 * time.Millisecond

// Holds remembers the leases that this process holds in a store, so that the store can renew
// them in time: the store calls Due, and renews what it returns. Holds may be used by many
// goroutines at once.
type Holds struct {
	// Now is the store's clock. Nil means the machine's.
	Now func() time.Time

	mu   sync.Mutex
	held map[string]held
}

type held struct {
	check Check
	due   time.Time
}

// Add adds a charge that was just made. It does nothing if the algorithm is not an
// [algorithms.Leaser].
func (h *Holds) Add(c *Check) {
	leaser, ok := c.Rule.Algorithm().(algorithms.Leaser)
	if !ok || c.Cost == 0 {
		return
	}
	due := h.now().Add(leaser.Renewal(c.Rule.At(0).Params))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = make(map[string]held)
	}
	h.held[c.Hold] = held{*c, due}
}

func (h *Holds) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// Remove removes a charge that is given back.
func (h *Holds) Remove(hold string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, hold)
}

// Has reports whether a charge is held.
func (h *Holds) Has(hold string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.held[hold]
	return ok
}

// Len returns how many charges are held.
func (h *Holds) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// All returns the charges that are held.
func (h *Holds) All() []Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Check, 0, len(h.held))
	for _, one := range h.held {
		all = append(all, one.check)
	}
	return all
}

// ByZone returns how many charges are held in each zone.
func (h *Holds) ByZone() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	zones := make(map[string]int64)
	for _, one := range h.held {
		zones[one.check.Rule.Zone()]++
	}
	return zones
}

// Due returns the charges to renew now, and assumes that the caller renews them. A charge may be
// given back meanwhile, and must not be made again by its renewal: see [Holds.Has].
func (h *Holds) Due(now time.Time) (due []Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, one := range h.held {
		if one.due.After(now) && one.due.Round(0).After(now.Round(0)) {
			continue // by both clocks: the monotonic one stands still while the machine is suspended
		}
		due = append(due, one.check)
		leaser := one.check.Rule.Algorithm().(algorithms.Leaser)
		one.due = now.Add(leaser.Renewal(one.check.Rule.At(0).Params))
		h.held[name] = one
	}
	return due
}
