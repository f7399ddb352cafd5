package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBreaker tells the life of a breaker: what is asked of it, how many of the calls are made,
// and what a probe finds if one is due.
func TestBreaker(t *testing.T) {
	down := errors.New("down")
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		opened, calls := 0, 0
		b.opened = func() { opened++ }
		ask := func(outcome error) error {
			if err := b.refuses(t.Context()); err != nil {
				return err
			}
			return b.run(func() error { calls++; return outcome })
		}
		for _, step := range []struct {
			what    string
			after   time.Duration
			due     bool
			asks    int
			outcome error // of the probe, if it is due, and of the calls
			calls   int
			state   string
		}{
			{"works", 0, false, 100, nil, 100, "closed"},
			{"four failures", 0, false, 4, down, 4, "closed"},
			{"one success between", 0, false, 1, nil, 1, "closed"},
			{"four more", 0, false, 4, down, 4, "closed"},
			{"the fifth opens it", 0, false, 100, down, 1, "open"},
			{"nobody calls", openFor - 1, false, 100, nil, 0, "open"},
			{"the probe fails", 2, true, 100, down, 0, "open"},
			{"and is not due again at once", openFor - 1, false, 100, down, 0, "open"},
			{"no request probes, even after a long time", time.Hour, true, 100, down, 0, "open"},
			{"a probe succeeds", openFor + 1, true, 100, nil, 100, "closed"},
			{"it counts anew", 0, false, 4, down, 4, "closed"},
			{"what says nothing of redis counts for nothing", 0, false, 50, store.ErrClosed, 50, "closed"},
			{"nor do callers that leave", 0, false, 50, context.Canceled, 50, "closed"},
			{"the fifth", 0, false, 10, down, 1, "open"},
		} {
			time.Sleep(step.after)
			if due := b.due(); due != step.due {
				t.Fatalf("%s: a probe is due: %v, want %v", step.what, due, step.due)
			}
			if step.due {
				b.probe(func() error { return step.outcome })
			}
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
		if opened != 4 {
			t.Errorf("told %d times that it opened, want 4", opened)
		}
	})
}

// TestRequestsWaitForAProbe: requests that come during a probe wait for its result, but no longer
// than they have time. Requests that come before it are refused at once.
func TestRequestsWaitForAProbe(t *testing.T) {
	const takes = 20 * time.Millisecond
	for _, c := range []struct {
		name    string
		outcome error
		have    time.Duration // how long the requests may wait
		waited  time.Duration
		pass    bool
	}{
		{"redis is back", nil, time.Second, takes, true},
		{"redis is still away", errors.New("down"), time.Second, takes, false},
		{"no time to wait", nil, takes / 2, takes / 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker()
				for range openAfter {
					_ = b.run(func() error { return errors.New("down") })
				}
				time.Sleep(openFor + 1)
				ask := func() (waited time.Duration, err error) {
					ctx, cancel := context.WithTimeout(t.Context(), c.have)
					defer cancel()
					begun := time.Now()
					err = b.refuses(ctx)
					return time.Since(begun), err
				}
				if waited, err := ask(); waited != 0 || !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("before the probe: %v after %v", err, waited)
				}
				var all sync.WaitGroup
				all.Go(func() {
					b.probe(func() error { time.Sleep(takes); return c.outcome })
				})
				synctest.Wait()
				for range 100 {
					all.Go(func() {
						waited, err := ask()
						if waited != c.waited || (err == nil) != c.pass || err != nil && !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("%v after %v, want to wait for %v", err, waited, c.waited)
						}
					})
				}
				all.Wait()
				if waited, err := ask(); waited != 0 || (err == nil) != (c.outcome == nil) {
					t.Errorf("after the probe: %v after %v", err, waited)
				}
			})
		})
	}
}

// TestSettle: who knows that Redis answers has the breaker closed as soon as it may be, and learns why it is not if its probe
// fails.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name    string
		since   time.Duration // since the breaker has opened
		outcome error         // of the probe
		probes  int
		waits   time.Duration // at least, and at most settlePause more
	}{
		{"just opened", 0, nil, 1, openFor},
		{"a probe is due", openFor + 1, nil, 1, 0},
		{"it opens again", openFor + 1, errors.New("too slow"), 3, settleTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker()
				none := func() error { t.Error("a probe of a breaker that is closed"); return nil }
				if err := b.settle(t.Context(), none); err != nil {
					t.Errorf("closed: %v", err)
				}
				for range openAfter {
					_ = b.run(func() error { return errors.New("down") })
				}
				time.Sleep(c.since)
				began, probes := time.Now(), 0
				err := b.settle(t.Context(), func() error { probes++; return c.outcome })
				waited := time.Since(began)
				if !errors.Is(err, c.outcome) || c.outcome != nil && !errors.Is(err, store.ErrUnavailable) || (b.state() == store.BreakerClosed) != (c.outcome == nil) {
					t.Errorf("%v, and it is %s", err, b.state())
				}
				if probes != c.probes || waited < c.waits || waited > c.waits+settlePause {
					t.Errorf("%d probes in %v, want %d in %v", probes, waited, c.probes, c.waits)
				}
			})
		})
	}
}
