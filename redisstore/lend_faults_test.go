//go:build deep

package redisstore_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendFaults: while requests, replies and connections to Redis are lost, three processes admit
// no more than burst + rate x time, counted from any admission to any other.
func TestLendFaults(t *testing.T) {
	t.Parallel()
	const rate, burst, faults = 1000, 300, 0.05
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	stores := make([]*redisstore.Store, 3)
	for i := range stores {
		stores[i] = open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 50 * time.Millisecond})
	}
	rule := lendingRule(t, "z", "token_bucket", algorithms.Limit{Events: rate, Window: time.Second, Burst: burst}, 20*time.Millisecond)
	proxy.Inject(func(command string) faultproxy.Fault {
		if command != "evalsha" || rand.Float64() > faults {
			return faultproxy.None
		}
		return faultproxy.Fault(1 + rand.IntN(6))
	})
	var mu sync.Mutex
	var spans []span
	var failed, admitted atomic.Int64
	began, end := time.Now(), time.Duration(deep.Steps(1500, 60_000))*time.Millisecond
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			for time.Since(began) < end || admitted.Load() == 0 && time.Since(began) < patient.Patience {
				var d [1]algorithms.Decision
				before := time.Since(began)
				err := stores[i%len(stores)].Take(context.Background(), []store.Check{{Rule: rule, Key: "k", Cost: 1}}, d[:])
				switch {
				case err != nil:
					failed.Add(1)
				case d[0].Allowed:
					admitted.Add(1)
					mu.Lock()
					spans = append(spans, span{before, time.Since(began)})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // the load, not a synchronization
			}
		})
	}
	wait.Wait()
	if over := excess(spans, rate, burst); over > 0 {
		t.Errorf("%.1f admitted too many", over)
	}
	t.Logf("%d admitted in %v, %d requests failed", len(spans), end, failed.Load())
	if len(spans) == 0 {
		t.Error("nothing was admitted")
	}
}

// span is when a request was decided: some time between the two.
type span struct{ from, to time.Duration }

// excess returns by how many the requests that were certainly decided within some time exceed
// burst + rate x time, at most.
func excess(spans []span, rate, burst float64) float64 {
	over := 0.0
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.to, b.to) })
	for i := range spans {
		from := spans[i].from
		n := 0.0
		for _, s := range spans {
			if s.from < from {
				continue
			}
			n++
			over = max(over, n-burst-rate*(s.to-from).Seconds()-1)
		}
	}
	return over
}
