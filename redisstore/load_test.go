//go:build deep

package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// load sends requests, each for one of some clients, until it is stopped.
type load struct {
	stop                      chan struct{}
	done                      sync.WaitGroup
	admitted, refused, failed atomic.Int64
	lastFailure               atomic.Pointer[error]
}

func startLoad(t *testing.T, s store.Store, rules []*store.Rule, key func() string) *load {
	l := &load{stop: make(chan struct{})}
	for range 8 {
		l.done.Go(func() {
			checks, decisions := make([]store.Check, len(rules)), make([]algorithms.Decision, len(rules))
			for {
				select {
				case <-l.stop:
					return
				case <-time.After(time.Millisecond):
				}
				k := key()
				for i, rule := range rules {
					checks[i] = store.Check{Rule: rule, Key: k, Cost: 1}
				}
				if err := s.Take(context.Background(), checks, decisions); err != nil {
					l.failed.Add(1)
					l.lastFailure.Store(&err)
				} else if decisions[0].Allowed {
					l.admitted.Add(1)
				} else {
					l.refused.Add(1)
				}
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

func (l *load) err() error {
	if err := l.lastFailure.Load(); err != nil {
		return *err
	}
	return nil
}

// awaitService waits until a number of requests in a row are answered.
func awaitService(t *testing.T, s store.Store, rule *store.Rule, key string) {
	t.Helper()
	start, inARow := time.Now(), 0
	patient.Until(t, "service", func() bool {
		var d [1]algorithms.Decision
		if inARow++; s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: 1}}, d[:]) != nil {
			inARow = 0
			time.Sleep(5 * time.Millisecond) // until a client sends its next request
		}
		return inARow == 20
	})
	t.Logf("service after %v", time.Since(start))
	patient.Soon(t, "service", time.Since(start), 2*time.Second)
}

// twoZones returns the rules of two zones, both of which a request meets.
func twoZones(t testing.TB, events int64) []*store.Rule {
	return []*store.Rule{
		storetest.Rule(t, "narrow", "token_bucket", algorithms.Limit{Events: events, Window: 24 * time.Hour}),
		storetest.Rule(t, "wide", "fixed_window", algorithms.Limit{Events: 10 * events, Window: 1000 * time.Hour}),
	}
}
