package slots_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/slots"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestSlotsGiveWay: slots that are kept for requests of one cost refuse none of another cost. A request that needs them gets
// them after they are back, and one that finds enough beside them leaves them where they are.
func TestSlotsGiveWay(t *testing.T) {
	rule, err := store.NewLendingRule("slots", algorithms.Concurrency{}, algorithms.Limit{Events: 10, Lease: time.Hour}, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		below, done := &slowBack{Below: layertest.New(t), gone: make(chan struct{}, 100)}, make(chan struct{})
		below.SetNow(time.Now().UnixMicro())
		below.under.Store(int64(3 * time.Millisecond))
		top := slots.New(below, &slots.Config{Loans: loans.New(), PerCall: link.MaxPerCall, Timeout: 100 * time.Millisecond, Processes: func() int { return 1 }, Done: done})
		over := tend(top)
		take := func(cost int64) (store.Check, bool) {
			c, decisions := store.Check{Rule: rule, Key: "k", Cost: cost, LeaseID: store.NewLeaseID()}, make([]algorithms.Decision, 1)
			if err := top.Take(context.Background(), []store.Check{c}, decisions); err != nil {
				t.Fatal(err)
			}
			return c, decisions[0].Allowed
		}
		end := func(c store.Check) {
			top.Adjust(layer.Adjustment{Adjustment: store.Adjustment{Check: c, Delta: -c.Cost}})
		}
		kept := func() int64 { return top.Kept.KeptOf(rule, "k") }
		for kept() < 2 {
			a, _ := take(1)
			b, _ := take(1)
			end(a)
			end(b)
			time.Sleep(5 * time.Millisecond)
		}
		few, passes := take(3)
		if !passes || kept() != 2 {
			t.Errorf("a request of cost 3, with 8 free: passes %v, and %d are kept, want 2", passes, kept())
		}
		many, passes := take(7)
		if !passes || kept() != 0 {
			t.Errorf("a request of cost 7, with 5 free and 2 kept: passes %v, and %d are kept, want none", passes, kept())
		}
		if _, passes := take(1); passes {
			t.Error("11 pass of 10")
		}
		end(few)
		end(many)
		close(done)
		<-over
		time.Sleep(time.Second)
	})
}
