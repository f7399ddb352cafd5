package pool

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
)

func init() { caddy.OnExit(closeOpenStores) }

// openStores has all open stores. A request keeps its store open until it is over, but some
// requests are cut off when the process ends: those that grace_period does not wait for, and
// upgraded connections, such as WebSockets, for which Caddy never waits. Closing their stores on
// exit returns the slots that these requests hold at once, and not when their leases end.
var openStores sync.Map // *Store

func closeOpenStores(context.Context) {
	var closing sync.WaitGroup
	for s := range openStores.Range {
		closing.Go(func() {
			if err := s.(*Store).Close(); err != nil {
				logging.Logger().Warn("closing the store on exit", zap.Error(err))
			}
		})
	}
	closing.Wait()
}
