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

// bytesPerKey measures how many bytes a key takes in a store of some keys, each with one event.
func bytesPerKey(t testing.TB, name string, keys int) float64 {
	s, _ := openWith(t, memorystore.Options{MaxKeys: 2 * keys})
	check := store.Check{Cost: 1}
	if name == "ban" {
		check.KeyRules = &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 5, Within: time.Hour}}
		name = "token_bucket"
	}
	check.Rule = storetest.Rule(t, "zone", name, storetest.Limit(name, 1, time.Hour))
	before := heap()
	for i := range keys {
		check.Key, check.LeaseID = fmt.Sprint(i), storetest.LeaseID(check.Rule)
		for range 2 {
			if err := s.Take(context.Background(), []store.Check{check}, make([]algorithms.Decision, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	bytes := float64(heap()-before) / float64(keys)
	if s.Keys() != keys {
		t.Errorf("%d keys are kept, want %d", s.Keys(), keys)
	}
	runtime.KeepAlive(s)
	return bytes
}

// TestBytesPerKey: with a million keys, each takes the memory that the documentation gives.
// A refused key counts once, even in a zone with a ban.
func TestBytesPerKey(t *testing.T) {
	const many = 1_000_000
	for name, want := range keyBytes {
		bytes := bytesPerKey(t, name, many)
		if t.Logf("%s: %.0f bytes per key", name, bytes); bytes > 1.1*want || bytes < 0.9*want {
			t.Errorf("%s: %.0f bytes per key, want %.0f", name, bytes, want)
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
