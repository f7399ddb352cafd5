package link_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestContract: requests that a link makes, and what it sends afterwards, obey the contract of stores. Each names its
// keys and has the numbers of its limit.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		b := newBench(t)
		t.Cleanup(func() {
			if lost, cause := b.Outbox.Lost(); lost > 0 || b.Waiting() > 0 || b.failures.Load() > 0 {
				t.Errorf("%d adjustments are lost (%v), %d wait, %d failures", lost, cause, b.Waiting(), b.failures.Load())
			}
		})
		return &layertest.Store{Store: b.memory.Store, Top: b}, b.memory.SetNow
	})
}
