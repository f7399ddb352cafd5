package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBreaker tells the life of a breaker: what is asked of it, and how many calls of
// those that want one are made.
func TestBreaker(t *testing.T) {
	down := errors.New("down")
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		calls := 0
		ask := func(outcome error) error {
			if err := b.refuses(); err != nil {
				return err
			}
			return b.run(func() (struct{}, error) { calls++; return struct{}{}, outcome })
		}
		for _, step := range []struct {
			what    string
			after   time.Duration
			asks    int
			outcome error
			calls   int
			state   string
		}{
			{"works", 0, 100, nil, 100, "closed"},
			{"four failures", 0, 4, down, 4, "closed"},
			{"one success between", 0, 1, nil, 1, "closed"},
			{"four more", 0, 4, down, 4, "closed"},
			{"the fifth opens it", 0, 100, down, 1, "open"},
			{"nobody calls", openFor - 1, 100, nil, 0, "open"},
			{"one probe fails", 2, 100, down, 1, "open"},
			{"one probe each interval", openFor + 1, 100, down, 1, "open"},
			{"even after a long time", time.Hour, 100, down, 1, "open"},
			{"a probe succeeds", openFor + 1, 100, nil, 100, "closed"},
			{"it counts anew", 0, 4, down, 4, "closed"},
			{"what says nothing of redis counts for nothing", 0, 50, store.ErrClosed, 50, "closed"},
			{"nor do callers that leave", 0, 50, context.Canceled, 50, "closed"},
			{"the fifth", 0, 10, down, 1, "open"},
		} {
			time.Sleep(step.after)
			calls = 0
			for range step.asks {
				err := ask(step.outcome)
				if step.outcome != nil && !errors.Is(err, step.outcome) {
					t.Fatalf("%s: %v does not tell the cause", step.what, err)
				}
			}
			if calls != step.calls || b.state() != step.state {
				t.Fatalf("%s: %d calls, want %d; %s, want %s", step.what, calls, step.calls, b.state(), step.state)
			}
		}
		if err := ask(nil); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, down) {
			t.Errorf("while open: %v, want %v with its cause", err, store.ErrUnavailable)
		}
	})
}

// TestNobodyWaitsForAProbe: while one call hangs to find out, all others are answered.
func TestNobodyWaitsForAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		for range openAfter {
			_ = b.run(func() (struct{}, error) { return struct{}{}, errors.New("down") })
		}
		time.Sleep(openFor + 1)
		start := time.Now()
		var calls, refused atomic.Int64
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				err := b.refuses()
				if err == nil {
					err = b.run(func() (struct{}, error) {
						calls.Add(1)
						time.Sleep(20 * openFor) // hangs for longer than the next probes are away
						return struct{}{}, nil
					})
				}
				if errors.Is(err, store.ErrUnavailable) && time.Since(start) == 0 {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		for range 15 { // more come while it hangs
			time.Sleep(openFor)
			at := time.Now()
			for range 10 {
				err := b.refuses()
				if err == nil {
					err = b.run(func() (struct{}, error) { calls.Add(1); return struct{}{}, nil })
				}
				if !errors.Is(err, store.ErrUnavailable) || time.Since(at) != 0 {
					t.Fatalf("got %v after %v", err, time.Since(at))
				}
			}
		}
		wg.Wait()
		if calls.Load() != 1 || refused.Load() != 999 {
			t.Errorf("%d calls, and %d refused at once, want 1 and 999", calls.Load(), refused.Load())
		}
		if b.refuses() != nil || b.state() != "closed" {
			t.Errorf("it is %s after the probe succeeded", b.state())
		}
	})
}

// TestProbeThatNeverCalls: a request may be let through and then not come to call. The
// next one probes.
func TestProbeThatNeverCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		for range openAfter {
			_ = b.run(func() (struct{}, error) { return struct{}{}, errors.New("down") })
		}
		for range 3 {
			time.Sleep(openFor + 1)
			if b.refuses() != nil || b.refuses() == nil {
				t.Fatal("not just one is let through")
			}
		}
		time.Sleep(openFor + 1)
		if b.refuses() != nil || b.run(func() (struct{}, error) { return struct{}{}, nil }) != nil || b.state() != "closed" {
			t.Error("it does not close")
		}
	})
}
