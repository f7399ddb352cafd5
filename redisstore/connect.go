package redisstore

import (
	"context"
	"time"
)

const (
	// connectTimeout bounds the making of a connection in the background.
	connectTimeout = 5 * time.Second

	// connectPause keeps failed decisions from trying to connect at their rate.
	connectPause = 100 * time.Millisecond
)

// connect makes a connection in the background after a decision that failed. Dialling,
// TLS and logging in can together take longer than a decision may, although one call on
// a connection that stands does not; and a decision that runs out of time closes its
// connection. Without this, such a Redis would never be reached.
func (s *Store) connect() {
	if !s.connecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.connecting.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		// Whatever the answer, and be it that this user may not ask: the connection then
		// waits in the pool.
		s.client.Ping(ctx)
		select {
		case <-time.After(connectPause):
		case <-s.returns.quit:
		}
	}()
}
