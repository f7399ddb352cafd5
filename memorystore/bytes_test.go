//go:build deep

package memorystore_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// keyBytes are the bytes of a key with one event, as docs/algorithms.md gives them. The last
// one is for a refused key in a zone with a ban, which has two states.
var keyBytes = map[string]float64{
	"fixed_window": 100, "leaky_bucket": 100, "token_bucket": 100, "sliding_window_counter": 100,
	"sliding_window_log": 130, "concurrency": 480, "ban": 200,
}

// TestBytesPerKey: with a million keys, each takes the memory that the documentation gives.
// A refused key counts once, even in a zone with a ban.
func TestBytesPerKey(t *testing.T) {
	const keys = 1_000_000
	for name, want := range keyBytes {
		s, _ := openWith(t, memorystore.Options{MaxKeys: 2 * keys})
		check, algorithm := store.Check{Cost: 1}, name
		if name == "ban" {
			check.KeyRules = &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 5, Within: time.Hour}}
			algorithm = "token_bucket"
		}
		check.Rule = storetest.Rule(t, "zone", algorithm, storetest.Limit(algorithm, 1, time.Hour))
		before := heap()
		for i := range keys {
			check.Key, check.LeaseID = fmt.Sprint(i), storetest.LeaseID(check.Rule)
			for range 2 {
				if err := s.Take(context.Background(), []store.Check{check}, make([]algorithms.Decision, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		bytes := float64(heap()-before) / keys
		if t.Logf("%s: %.0f bytes per key", name, bytes); bytes > 1.1*want || bytes < 0.9*want {
			t.Errorf("%s: %.0f bytes per key, want %.0f", name, bytes, want)
		}
		if s.Keys() != keys { // it is still there
			t.Errorf("%s: %d keys are kept, want %d", name, s.Keys(), keys)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
