package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
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

func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, rule := open(t, redisstore.Options{Address: server.Addr()}), hourly(t)
	for i := range 5 {
		if d := take(t, s, rule, "client", 1); d.Remaining != int64(99-i) {
			t.Fatalf("request %d: %+v", i+1, d)
		}
		if err := server.Admin().ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServiceComesBack: after Redis was away, the next request is answered soon.
func TestServiceComesBack(t *testing.T) {
	patient.BesideOthers(t)
	server := redistest.Start(t)
	s, rule := open(t, redisstore.Options{Address: server.Addr(), Timeout: 50 * time.Millisecond}), hourly(t)
	answers := func() bool { return attempt(s, rule) == nil } // within 50 ms

	away := map[string]struct{ leave, comeBack func() }{
		"killed": {server.Kill, server.Restart},
		"frozen": {server.Freeze, server.Thaw},
	}
	for name, change := range away {
		t.Run(name, func(t *testing.T) {
			patient.Until(t, "an answer", answers)
			change.leave()
			for range 40 {
				if err := attempt(s, rule); err == nil {
					t.Fatal("answered, but Redis is away")
				}
			}
			change.comeBack()
			start := time.Now()
			patient.Until(t, "an answer after Redis is back", answers)
			t.Logf("%s: answered %v after Redis was back", name, time.Since(start))
			patient.Soon(t, "an answer after Redis is back", time.Since(start), 2*time.Second)
		})
	}
}

// TestTimeoutIsKept: a Redis that does not answer costs one timeout, whatever hangs. All requests
// return while it hangs.
func TestTimeoutIsKept(t *testing.T) {
	patient.BesideOthers(t)
	server := redistest.Start(t)
	const timeout = 50 * time.Millisecond
	s, rule := open(t, redisstore.Options{Address: server.Addr(), Timeout: timeout, PoolSize: 2}), hourly(t)
	patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
	server.Freeze()
	results := make(chan error)
	for range 32 { // far more than there are connections
		go func() {
			start := time.Now()
			if attempt(s, rule) != nil {
				patient.Soon(t, "an attempt", time.Since(start), timeout+2*time.Second)
				results <- nil
			} else {
				results <- errors.New("answered, but Redis is frozen")
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
	server := redistest.Start(t)
	s, rule := open(t, redisstore.Options{Address: server.Addr()}), hourly(t)
	take(t, s, rule, "client", 1)
	closed(t, s)
	closed(t, s) // closing twice does no harm
	if err := attempt(s, rule); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}

// TestTwoStoresShareALimit: two stores with one Redis enforce one limit.
func TestTwoStoresShareALimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, two := open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	for _, name := range algorithms.Names() {
		storetest.AdmitsExactly(t, storetest.Rule(t, "zone", name, storetest.Limit(name, 100, time.Hour)), 500, 100, one, two)
	}
}

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
