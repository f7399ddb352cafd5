package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
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

// TestDistance: the distance follows the fastest calls. Delays of some calls say little about it,
// a call without a delay shows it at once, and it follows a Redis that has moved.
func TestDistance(t *testing.T) {
	var d distance
	for i := range 200 {
		took := 20 * time.Millisecond
		switch {
		case i == 0:
			took = 60 * time.Millisecond // the first call had to connect
		case i%4 == 0:
			took = 45 * time.Millisecond
		}
		d.measure(took)
		if is := d.is(); i > 0 && (is < 20*time.Millisecond || is > 21*time.Millisecond) {
			t.Fatalf("after %d calls it is %v, want 20ms", i+1, is)
		}
	}
	for range 200 {
		d.measure(40 * time.Millisecond)
	}
	if is := d.is(); is < 39*time.Millisecond {
		t.Errorf("200 calls after it was moved to 40ms it is %v", is)
	}
	d.measure(time.Millisecond)
	if is := d.is(); is != time.Millisecond {
		t.Errorf("after a call of 1ms it is %v", is)
	}
}

// farBatcher returns a batcher for a Redis that is far away, with all its connections. It must be
// made in the bubble of the test.
func farBatcher(trip time.Duration, send func(*call)) *batcher {
	b := newBatcher(50*time.Millisecond, new(distance), new(atomic.Int32), func(_ context.Context, c *call) error {
		send(c)
		time.Sleep(trip)
		return nil
	})
	b.trip.measure(trip)
	b.links.Store(maxCalls)
	return b
}

// TestFarRequestsAreSentSoon: however many requests go to a far Redis, and whenever they come,
// each waits for at most a quarter of a round trip or the least gap before it is sent, and there are no more calls
// than connections. How many calls a flood takes at once depends on which of its requests are
// first. All others wait until these calls are over at most. The gap that they leave shrinks from
// then on: seven calls at once leave 2/7 of a round trip in the second one, and less than a
// quarter in the third.
func TestFarRequestsAreSentSoon(t *testing.T) {
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	for _, trip := range []time.Duration{5 * time.Millisecond, 16 * time.Millisecond, 22 * time.Millisecond, 40 * time.Millisecond} {
		t.Run(trip.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				b := farBatcher(trip, func(*call) { calls.Add(1) })
				b.timeout = 4 * trip
				var all sync.WaitGroup
				start := time.Now()
				ask := func(key string) {
					begun, most := time.Now(), trip+max(trip/4, leastGap)
					switch since := begun.Sub(start); {
					case since <= trip:
						most = 2 * trip
					case since <= 2*trip:
						most = trip + max(trip*3/10, leastGap)
					}
					if err := b.do(t.Context(), request(rule, key, 1)); err != nil {
						t.Errorf("%s: %v", key, err)
					}
					if took := time.Since(begun); took > most {
						t.Errorf("%s took %v", key, took)
					}
				}
				for i := range 100 { // at once
					all.Go(func() { ask(fmt.Sprint("flood ", i)) })
				}
				for i := range 500 { // and one by one
					all.Go(func() { ask(fmt.Sprint("client ", i)) })
					time.Sleep(trip / 50)
				}
				all.Wait()
				if most := int64(2 * maxCalls * 11); calls.Load() > most {
					t.Errorf("%d calls in 11 round trips, want at most %d", calls.Load(), most)
				}
				time.Sleep(2 * idleTime) // until idle workers end
			})
		})
	}
}

// TestNotSentTooLate: a request that cannot be answered any more in its caller's time is not
// sent. Its caller gets an error, and the call that it had to wait for goes on.
func TestNotSentTooLate(t *testing.T) {
	const trip = 22 * time.Millisecond
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		b := farBatcher(trip, func(c *call) {
			for _, r := range c.requests {
				sent = append(sent, r.Ops[0].Key)
			}
		})
		for _, c := range []struct {
			has  time.Duration
			want error
		}{
			{trip - 1, ErrLate},
			{trip + time.Millisecond, nil},
		} {
			sent = nil
			ctx, cancel := context.WithTimeout(t.Context(), c.has)
			err := b.do(ctx, request(rule, "hurried", 1))
			cancel()
			if !errors.Is(err, c.want) || (len(sent) == 0) != (c.want != nil) {
				t.Errorf("with %v left: %v, %d were sent", c.has, err, len(sent))
			}
		}
		if MayHaveRun(ErrLate) || Failure(ErrLate) != store.FailureTimeout {
			t.Errorf("%v: may have run: %v, kind %s", ErrLate, MayHaveRun(ErrLate), Failure(ErrLate))
		}
		time.Sleep(2 * idleTime)
	})
}

// TestOwnDeadlineIsNotRedisFault: a caller that leaves before the answer does not end the call,
// so it affects neither the connection nor the breaker.
func TestOwnDeadlineIsNotRedisFault(t *testing.T) {
	const trip = 40 * time.Millisecond
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		breaker := newBreaker()
		b := farBatcher(trip, func(*call) {})
		b.trip = new(distance) // not known to be far, so all are sent
		b.send = func(ctx context.Context, _ *call) error {
			return breaker.run(func() error {
				select {
				case <-time.After(trip):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		var all sync.WaitGroup
		for i := range 10 * openAfter {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), trip/2)
				defer cancel()
				if err := b.do(ctx, request(rule, fmt.Sprint(i), 1)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			time.Sleep(trip)
		}
		all.Wait()
		time.Sleep(2 * idleTime)
		if breaker.failing() {
			t.Error("the breaker counted deadlines of callers")
		}
	})
}

// TestOneHangCountsOnce: calls that were in progress together and time out together are one
// failure. Calls that time out one after another open the breaker.
func TestOneHangCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		hang := func(calls int) {
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					err := b.run(func() error {
						time.Sleep(50 * time.Millisecond)
						return context.DeadlineExceeded
					})
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
				})
			}
			all.Wait()
		}
		for i := range openAfter {
			if b.open.Load() {
				t.Fatalf("it opened after %d hangs", i)
			}
			hang(maxCalls)
		}
		if !b.open.Load() {
			t.Errorf("it did not open after %d hangs", openAfter)
		}
	})
}
