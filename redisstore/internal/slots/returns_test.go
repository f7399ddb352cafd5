package slots_test

import (
	"context"
	"fmt"
	"sync/atomic"
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

// slowBack is a layer to which adjustments are under way for a while.
type slowBack struct {
	*layertest.Below
	under atomic.Int64  // a time.Duration
	gone  chan struct{} // gets a value when some have left
}

// Adjust implements [layer.Layer].
func (s *slowBack) Adjust(adjustments ...layer.Adjustment) {
	if len(adjustments) == 0 {
		return
	}
	under := time.Duration(s.under.Load())
	s.gone <- struct{}{}
	go func() {
		time.Sleep(under)
		s.Below.Adjust(adjustments...)
		for i := range adjustments {
			if sent := adjustments[i].Sent; sent != nil {
				sent(true, nil)
			}
		}
	}()
}

// tend has a layer tend its slots. The result is closed when it has ended.
func tend(top *slots.Layer) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		top.Tend()
	}()
	return over
}

// TestAsksFollowReturns: a slot that nobody uses is on its way back when a request comes. The request does not overtake it,
// so it is not refused. What is on its way for too long may be lost, and holds up nobody.
func TestAsksFollowReturns(t *testing.T) {
	const timeout = 100 * time.Millisecond
	rule, err := store.NewLendingRule("slots", algorithms.Concurrency{}, algorithms.Limit{Events: 4, Lease: time.Hour}, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for under, most := range map[time.Duration]time.Duration{3 * time.Millisecond: 3 * time.Millisecond, time.Hour: timeout / 2} {
		synctest.Test(t, func(t *testing.T) {
			below, done := &slowBack{Below: layertest.New(t), gone: make(chan struct{}, 100)}, make(chan struct{})
			below.SetNow(time.Now().UnixMicro())
			top := slots.New(below, &slots.Config{Loans: loans.New(), PerCall: link.MaxPerCall, Timeout: timeout, Processes: func() int { return 1 }, Done: done})
			over := tend(top)
			take := func() (store.Check, bool) {
				c, decisions := store.Check{Rule: rule, Key: "k", Cost: 1, LeaseID: store.NewLeaseID()}, make([]algorithms.Decision, 1)
				if err := top.Take(context.Background(), []store.Check{c}, decisions); err != nil {
					t.Fatal(err)
				}
				return c, decisions[0].Allowed
			}
			kept := func() int64 {
				kept, _ := top.Kept.Kept()
				return kept["slots"]
			}
			for kept() == 0 {
				c, _ := take()
				top.Adjust(layer.Adjustment{Adjustment: store.Adjustment{Check: c, Delta: -1}})
				time.Sleep(5 * time.Millisecond)
			}
			for i := range 4 - kept() { // others take the rest
				c, decisions := store.Check{Rule: rule, Key: "k", Cost: 1, LeaseID: fmt.Sprint("other ", i)}, make([]algorithms.Decision, 1)
				if err := below.Take(t.Context(), []store.Check{c}, decisions); err != nil || !decisions[0].Allowed {
					t.Fatal(decisions, err)
				}
			}
			for len(below.gone) > 0 {
				<-below.gone
			}
			below.under.Store(int64(under))
			<-below.gone // the slot was not needed for a while
			began := time.Now()
			if _, passes := take(); passes != (under < timeout) {
				t.Errorf("%v under way: passes %v", under, passes)
			}
			if took := time.Since(began); took > most {
				t.Errorf("%v under way: a request waits for %v", under, took)
			}
			began = time.Now()
			if take(); time.Since(began) > 0 {
				t.Errorf("%v under way: another request waits, too", under)
			}
			close(done)
			<-over
			time.Sleep(under)
		})
	}
}
