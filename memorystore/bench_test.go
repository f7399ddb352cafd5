package memorystore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func BenchmarkTake(b *testing.B) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // see BenchmarkLendAndGiveBack
		}
		for _, n := range []int{1, 100_000} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, n), func(b *testing.B) {
				s, err := memorystore.New(memorystore.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = s.Close() })
				rule := storetest.Rule(b, "zone", name, storetest.Limit(name, 100, time.Second))
				keys := make([]string, n)
				for i := range keys {
					keys[i] = fmt.Sprintf("203.0.%d.%d", i/256, i%256)
				}
				var next atomic.Int64
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					i := int(next.Add(7919))
					checks, decisions := make([]store.Check, 1), make([]algorithms.Decision, 1)
					for pb.Next() {
						i++
						checks[0] = store.Check{Rule: rule, Key: keys[i%n], Cost: 1}
						if err := s.Take(context.Background(), checks, decisions); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

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

func BenchmarkLendAndGiveBack(b *testing.B) {
	s, err := memorystore.New(memorystore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	rule := storetest.Rule(b, "zone", "concurrency", algorithms.Limit{Events: 100})
	checks, decisions := []store.Check{{Rule: rule, Key: "client", Cost: 1, LeaseID: "lease"}}, make([]algorithms.Decision, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Take(context.Background(), checks, decisions); err != nil || !decisions[0].Allowed {
			b.Fatal(err, decisions[0])
		}
		s.Adjust(store.Adjustment{Check: checks[0], Delta: -1})
	}
}
