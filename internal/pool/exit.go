package pool

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
)

func init() { caddy.OnExit(closeOpenStores) }

// openStores are the stores that are open. A request keeps its store open until it is over,
// and some requests are cut off when the process ends: those that grace_period does not
// wait for, and upgraded connections, such as WebSockets, for which Caddy never waits.
// Their stores are closed last of all, so that what they hold is given back at once, and
// not when its lease ends.
var openStores sync.Map // *shared

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
