package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBackWithoutARequest: that Redis is back is found out without a request, so the first
// ones that come are all decided, however many come at once.
func TestBackWithoutARequest(t *testing.T) {
	for name, outage := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redisstore.Options{Address: server.Addr(), Timeout: time.Second})
			rule := hourly(t)
			take(t, s, rule, "client", 1)
			ask := func() error {
				return s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1))
			}
			outage.begin(server)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for s.Breaker() != store.BreakerOpen {
						_ = ask()
					}
				})
			}
			all.Wait()
			outage.end(server)
			for deadline := time.Now().Add(time.Minute); s.Breaker() != store.BreakerClosed; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nobody has found out that Redis is back")
				}
			}
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
