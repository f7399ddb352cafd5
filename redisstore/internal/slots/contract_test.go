package slots_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/slots"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestContract: one process that keeps slots obeys the contract of stores.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		below, done := layertest.New(t), make(chan struct{})
		top := slots.New(below, &slots.Config{
			Loans: loans.New(), PerCall: link.MaxPerCall, Timeout: time.Second, Processes: func() int { return 1 }, Done: done,
		})
		over := tend(top)
		t.Cleanup(func() {
			top.Kept.Close()
			close(done)
			<-over
		})
		return &layertest.Store{Store: below.Store, Top: top}, below.SetNow
	})
}
