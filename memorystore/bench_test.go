package memorystore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// BenchmarkTakeAmongMany decides requests of one of a million keys, in one zone and in three. Most of that is
// waiting for memory.
func BenchmarkTakeAmongMany(b *testing.B) {
	for _, zones := range []int{1, 3} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			s, err := memorystore.New(memorystore.Options{MaxKeys: 10_000_000})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			checks, decisions := make([]store.Check, zones), make([]algorithms.Decision, zones)
			for i := range checks {
				limit := storetest.Limit("token_bucket", 1000, time.Hour)
				checks[i] = store.Check{Rule: storetest.Rule(b, fmt.Sprint("zone ", i), "token_bucket", limit), Cost: 1}
			}
			take := func(key string) {
				for i := range checks {
					checks[i].Key = key
				}
				if err := s.Take(context.Background(), checks, decisions); err != nil {
					b.Fatal(err)
				}
			}
			keys := make([]string, 1_000_000)
			for i := range keys {
				keys[i] = fmt.Sprintf("203.%d.%d.%d", i>>16, i>>8&255, i&255)
				take(keys[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				take(keys[rand.IntN(len(keys))])
			}
		})
	}
}
