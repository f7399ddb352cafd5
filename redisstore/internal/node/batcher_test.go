package node

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestBatchesOfSlowRedis: the next call waits for the one before, but not for longer than some milliseconds.
func TestBatchesOfSlowRedis(t *testing.T) {
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	for name, c := range map[string]struct {
		distance, takes time.Duration
		waits           int // requests that come one by one, while the first is under way
		want            []int
	}{
		"near, and quick":     {100 * time.Microsecond, 100 * time.Microsecond, 6, []int{1, 6}},
		"1 ms away, and slow": {time.Millisecond, 5 * time.Millisecond, 6, []int{1, 6}},
		"one call is stuck":   {time.Millisecond, 5 * time.Second, 1, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var sizes []int
				b := farBatcher(c.takes, func(c *call) {
					mu.Lock()
					defer mu.Unlock()
					sizes = append(sizes, len(c.requests))
				})
				b.timeout = 10 * time.Second
				b.trip.measure(c.distance)
				var all sync.WaitGroup
				begun := time.Now()
				ask := func(key string) {
					all.Go(func() {
						if err := b.do(t.Context(), request(rule, key, 1)); err != nil {
							t.Errorf("%s: %v", key, err)
						}
					})
					synctest.Wait()
				}
				for i := range 1 + c.waits {
					ask(fmt.Sprint("client ", i))
				}
				if name == "one call is stuck" {
					time.Sleep(5 * leastGap)
					mu.Lock()
					if len(sizes) != 2 {
						t.Errorf("%v after the first call had been under way for %v: %d calls", c.takes, time.Since(begun), len(sizes))
					}
					mu.Unlock()
				}
				all.Wait()
				if !slices.Equal(sizes, c.want) {
					t.Errorf("calls of %d requests, want %d", sizes, c.want)
				}
				time.Sleep(2 * idleTime) // until idle workers end
			})
		})
	}
}

// TestRequestsJoinACallThatGathers: between the decision to make a call and the moment at which it
// takes its requests, others come, such as those of the clients that the call before has answered. They
// join it, and begin no call of their own. Otherwise the next request is sent alone: a call that finds
// no request says nothing of how many come.
func TestRequestsJoinACallThatGathers(t *testing.T) {
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		b := farBatcher(100*time.Microsecond, nil)
		come := func(n int) (begun int) {
			for i := range n {
				now := time.Since(b.epoch)
				r := request(rule, fmt.Sprint("client ", i), 1)
				r.since, r.until = now, now+b.timeout
				b.push(r)
				if b.ready(now) {
					b.begin(now)
					begun++
				}
			}
			return begun
		}
		if begun := come(4); begun != 1 {
			t.Errorf("4 requests that came before the first call was filled began %d calls, want 1", begun)
		}
		b.begin(0) // a call that finds no request
		var calls [2]call
		for i := range calls {
			calls[i].Batch = protocol.NewBatch()
			b.fill(&calls[i])
		}
		if n := len(calls[0].requests); n != 4 || !b.shared {
			t.Errorf("the call has %d of 4 requests; shared: %v, after one that found none", n, b.shared)
		}
		if begun := come(3 * maxBatch); begun != 3 {
			t.Errorf("%d requests began %d calls, want 3: a call takes %d", 3*maxBatch, begun, maxBatch)
		}
	})
}
