package store

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// RenewInterval is how often a store should call [Leases.Due]. It is well below the shortest
// lease.
const RenewInterval = 250 * time.Millisecond

// Leases remembers the leases that this process has in a store, so that the store can renew
// them in time: the store calls Due, and renews what it returns. All times are of one clock. Leases may be used by many
// goroutines at once.
type Leases struct {
	mu   sync.Mutex
	kept map[string]lease
}

type lease struct {
	check   Check
	every   time.Duration
	renewed time.Time // or made
}

// Add adds a charge that is made now. It does nothing if the algorithm is not an [algorithms.Leaser].
func (h *Leases) Add(c *Check, now time.Time) {
	leaser, ok := c.Rule.Algorithm().(algorithms.Leaser)
	if !ok || c.Cost == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = make(map[string]lease)
	}
	h.kept[c.LeaseID] = lease{*c, leaser.Renewal(c.Rule.At(0).Params), now}
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

// ByZone returns how many charges are kept in each zone.
func (h *Leases) ByZone() map[string]int64 {
	zones := make(map[string]int64)
	for _, c := range h.All() {
		zones[c.Rule.Zone()]++
	}
	return zones
}

// All returns the charges that are kept.
func (h *Leases) All() []Check { return h.those(func(lease) bool { return true }) }

// Due returns the charges to renew now, and assumes that the caller renews them. A charge may be
// given back meanwhile, and must not be made again by its renewal: see [Leases.Has].
func (h *Leases) Due(now time.Time) []Check {
	return h.those(func(l lease) bool {
		// By either clock: the monotonic one stands still while the machine is suspended.
		due := now.Sub(l.renewed) >= l.every || now.Round(0).Sub(l.renewed.Round(0)) >= l.every
		if l.renewed = now; due {
			h.kept[l.check.LeaseID] = l
		}
		return due
	})
}

// those returns the charges that are like this, which is asked with the lock held. They are in an order that does not
// depend on that of a map: so what a store is sent is the same each time.
func (h *Leases) those(like func(lease) bool) (those []Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.kept {
		if like(one) {
			those = append(those, one.check)
		}
	}
	slices.SortFunc(those, func(a, b Check) int { return cmp.Compare(a.LeaseID, b.LeaseID) })
	return those
}

var (
	process     = strings.ToLower(rand.Text())
	lastLeaseID atomic.Uint64
)

// Process returns a random name for this process. No other process has it.
func Process() string { return process }

// NewLeaseID returns a name for [Check].LeaseID, made of the process's name and a number. No other
// charge has it.
func NewLeaseID() string { return process + "-" + strconv.FormatUint(lastLeaseID.Add(1), 36) }
