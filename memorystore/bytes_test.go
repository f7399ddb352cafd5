package memorystore_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// BenchmarkBytesPerKey measures what a key takes where there are a million of them, each
// with one event.
func BenchmarkBytesPerKey(b *testing.B) {
	const keys = 1_000_000
	for _, name := range algorithms.Names() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, _ := openWith(b, memorystore.Options{MaxKeys: 2 * keys})
				rule := storetest.Rule(b, "zone", name, storetest.Limit(name, 1000, time.Hour))
				before := heap()
				for i := range keys {
					take(b, s, rule, fmt.Sprint(i))
				}
				b.ReportMetric(float64(heap()-before)/keys, "B/key")
				b.ReportMetric(0, "ns/op")
				runtime.KeepAlive(s)
			}
		})
	}
}
