package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// BenchmarkTake decides one check, also of a zone that lends, and three checks of one request, with 1,
// 16 and 256 requests at once. No key comes often.
func BenchmarkTake(b *testing.B) {
	server := redistest.Start(b)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("203.%d.%d.%d", i/65536, i/256%256, i%256)
	}
	var rules []*store.Rule
	for _, zone := range []string{"a", "b", "c"} {
		rules = append(rules, storetest.Rule(b, zone, "token_bucket", algorithms.Limit{Events: 100, Window: time.Second}))
	}
	for _, c := range []struct {
		name  string
		rules []*store.Rule
	}{{"zones=1", rules[:1]}, {"zones=3", rules}} {
		rules, zones := c.rules, len(c.rules)
		for _, goroutines := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				s := open(b, redisstore.Options{Address: server.Addr()})
				var next, failed atomic.Int64
				var wg sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range goroutines {
					wg.Go(func() {
						checks, decisions := make([]store.Check, zones), make([]algorithms.Decision, zones)
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							for i := range checks {
								checks[i] = store.Check{Rule: rules[i], Key: keys[n*7919%int64(len(keys))], Cost: 1}
							}
							if s.Take(context.Background(), checks, decisions) != nil {
								failed.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if n := failed.Load(); n > 0 {
					b.Errorf("%d of %d failed", n, b.N)
				}
			})
		}
	}
}
