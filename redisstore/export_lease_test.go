package redisstore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Renew renews a lease at once, as settle does when it is due.
func (s *Store) Renew(c store.Check) error {
	return s.settleAll(context.Background(), []item{s.item(&c, opRenew, c.Hold, 0)})[0]
}

// StopRenewing forgets what is held, so that nothing is renewed by itself: leases fall
// due by a clock that tests do not set.
func (s *Store) StopRenewing() {
	for _, c := range s.holds.Due(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
		s.holds.Remove(c.Hold)
	}
}
