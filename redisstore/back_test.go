package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBackWithoutARequest: the store finds out that Redis is back without a request. So all of
// the first requests are decided, however many come at once.
func TestBackWithoutARequest(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redisstore.Options{Address: server.Addr(), Timeout: time.Second})
			rule := hourly(t)
			patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
			ask := func() error {
				return s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1))
			}
			outage.begin(server)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for s.Breaker() == store.BreakerClosed {
						_ = ask()
					}
				})
			}
			all.Wait()
			outage.end(server)
			patient.Until(t, "somebody to find out that Redis is back", func() bool { return s.Breaker() == store.BreakerClosed })
			for range 16 {
				all.Go(func() {
					for range 3 {
						if err := ask(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
