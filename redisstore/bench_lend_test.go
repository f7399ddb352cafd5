//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// BenchmarkTakeLent decides requests of one key that comes often by what this process holds: with lend alone, and with
// all that may take precedence over the limit.
func BenchmarkTakeLent(b *testing.B) {
	server := redistest.Start(b)
	ban := &store.Ban{For: time.Hour, After: 100, Within: time.Hour}
	for name, c := range map[string]store.Check{
		"lend":    {},
		"managed": {KeyRules: &store.KeyRules{Overrides: true, Ban: ban}},
		"dry run": {KeyRules: &store.KeyRules{Overrides: true, Ban: ban}, Independent: true},
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, redisstore.Options{Address: server.Addr()})
			c.Rule = lendingRule(b, name, "token_bucket", algorithms.Limit{Events: 1e9, Window: time.Second}, 100*time.Millisecond)
			c.Key, c.Cost = "k", 1
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var d [1]algorithms.Decision
				for pb.Next() {
					if err := s.Take(context.Background(), []store.Check{c}, d[:]); err != nil || !d[0].Allowed {
						b.Errorf("%+v, %v", d[0], err)
						return
					}
				}
			})
			b.ReportMetric(float64(s.Stats().Calls)/float64(b.N), "calls/op")
		})
	}
}
