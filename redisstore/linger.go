package redisstore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// lingerFor bounds how long a closed store tries to send what waits, if its Redis does not
// come back: its options may have been changed because that is gone for good.
const lingerFor = time.Hour

// linger sends what still waits when the store is closed because a config was replaced, as
// far as it matters, for the process lives on. Then it closes the connections.
func (s *Store) linger(told uint64) {
	retry := time.NewTicker(store.RenewInterval)
	defer retry.Stop()
	for end := time.Now().Add(lingerFor); s.returns.retry() && time.Now().Before(end); <-retry.C {
		s.giveBack(context.Background())
	}
	s.returns.abandon()
	s.warnLost(told, true)
	_ = s.topology.close()
}
