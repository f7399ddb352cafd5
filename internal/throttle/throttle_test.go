package throttle_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
)

// TestAllow: of many calls at the same time one is allowed, and another one in each interval.
func TestAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line throttle.Throttle
		for round := range 3 {
			var allowed atomic.Int64
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if line.Allow() {
						allowed.Add(1)
					}
				})
			}
			all.Wait()
			if n := allowed.Load(); n != 1 {
				t.Errorf("round %d: %d were allowed, want 1", round, n)
			}
			time.Sleep(throttle.Interval - time.Millisecond)
			if line.Allow() {
				t.Errorf("round %d: a line was allowed before the interval was over", round)
			}
			time.Sleep(time.Millisecond)
		}
	})
}
