package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func hourly(t testing.TB) *store.Rule {
	return storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
}

func attempt(s store.Store, rule *store.Rule) error {
	var d [1]algorithms.Decision
	return s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, d[:])
}

// TestTimeoutIsKept: a Redis that does not answer costs one timeout, whatever hangs. All requests
// return while it hangs.
func TestTimeoutIsKept(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	const timeout = 50 * time.Millisecond
	options := at(server)
	options.Address, options.Timeout, options.PoolSize = proxy.Addr(), timeout, 2
	s, rule := open(t, options), hourly(t)
	patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
	proxy.Inject(func(string) faultproxy.Fault { return faultproxy.SwallowCommand })
	results := make(chan error)
	for range 32 { // far more than there are connections
		go func() {
			start := time.Now()
			if attempt(s, rule) != nil {
				patient.Soon(t, "an attempt", time.Since(start), timeout+2*time.Second)
				results <- nil
			} else {
				results <- errors.New("answered, but no command came to Redis")
			}
		}()
	}
	for range 32 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s, rule := open(t, at(redistest.Shared(t))), hourly(t)
	take(t, s, rule, "client", 1)
	closed(t, s)
	closed(t, s) // closing twice does no harm
	if err := attempt(s, rule); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}
