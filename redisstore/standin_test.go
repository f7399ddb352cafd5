package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// inBubble runs a test by its own clock. Questions hold channels, which must not be used in
// another bubble, so they are not pooled across it.
func inBubble(t *testing.T, test func(t *testing.T)) {
	fresh := func() { questions = sync.Pool{New: func() any { return newQuestion() }} }
	fresh()
	defer fresh()
	synctest.Test(t, test)
}

// fakeFar is a store whose Redis is a function. It must be made in the bubble of a test.
func fakeFar(timeout, trip time.Duration, send func(ctx context.Context, c *call) error) *Store {
	s := &Store{prefix: "rl", timeout: timeout, logger: zap.NewNop, denied: newDenied(time.Second, timeout), today: func() int64 { return 0 }}
	l := &lane{breaker: newBreaker()}
	l.connecting.Store(true) // there is nothing to connect to
	l.timeout, l.epoch, l.idle, l.send = timeout, time.Now(), make(chan struct{}), send
	l.trip.measure(trip)
	l.links.count.Store(maxCalls)
	s.topology = single{l}
	return s
}

// TestRefusedJustNow: requests that cannot be answered in time are refused if their key was
// refused a moment before they came, and told to come again a little later. Of other keys,
// of zones that stand apart and of what is long over nothing is made up; and what Redis
// says in time is what holds.
func TestRefusedJustNow(t *testing.T) {
	const timeout, trip = 50 * time.Millisecond, 40 * time.Millisecond
	const wait = 100 * time.Millisecond // that Redis tells
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 10, Window: time.Second})
	other := storetest.Rule(t, "other", "token_bucket", algorithms.Limit{Events: 10, Window: time.Second})
	inBubble(t, func(t *testing.T) {
		late, allow := false, false
		s := fakeFar(timeout, trip, func(ctx context.Context, c *call) error {
			if late {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(trip)
			for _, q := range c.questions {
				for i := range q.items {
					q.decisions[q.items[i].index] = algorithms.Decision{Allowed: allow, Quota: 10, Remaining: 5, RetryAfter: wait, NextAfter: wait, ResetAfter: time.Second}
				}
			}
			return nil
		})
		ask := func(checks ...store.Check) ([]algorithms.Decision, error) {
			decisions := make([]algorithms.Decision, len(checks))
			err := s.Take(t.Context(), checks, decisions)
			return decisions, err
		}
		client := store.Check{Rule: rule, Key: "client", Cost: 1}
		learn := func() {
			t.Helper()
			late, allow = false, false
			if d, err := ask(client); err != nil || d[0].Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			time.Sleep(wait)
		}

		learn()
		late = true
		var all sync.WaitGroup
		for range 100 { // the refusal is over
			all.Go(func() {
				begun := time.Now()
				d, err := ask(client)
				if err != nil || d[0].Allowed || d[0].RetryAfter != timeout || d[0].Quota != 10 {
					t.Errorf("%+v, %v", d, err)
				}
				if took := time.Since(begun); took > timeout {
					t.Errorf("it took %v", took)
				}
			})
		}
		all.Wait()
		apart := store.Check{Rule: other, Key: "client", Cost: 1, Independent: true}
		if d, err := ask(store.Check{Rule: other, Key: "client", Cost: 1}, client, apart); err != nil || d[1].Allowed || !d[0].Allowed || !d[2].Exempt {
			t.Errorf("with other zones: %+v, %v", d, err)
		}
		if _, err := ask(store.Check{Rule: rule, Key: "another", Cost: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another key: %v", err)
		}
		time.Sleep(time.Second + wait)
		if _, err := ask(client); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second later: %v", err)
		}

		learn()
		allow = true
		if d, err := ask(client); err != nil || !d[0].Allowed {
			t.Errorf("answered in time: %+v, %v", d, err)
		}
		late = true
		if _, err := ask(client); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after it was allowed: %v", err)
		}
		time.Sleep(2 * idleTime)
	})
}

// TestTurnsOnlyWithTime: when a refusal is just over, the others wait for the answer to the
// first if they have the time to ask themselves afterwards, and else ask at once.
func TestTurnsOnlyWithTime(t *testing.T) {
	const timeout = 50 * time.Millisecond
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 10, Window: time.Second})
	for trip, want := range map[time.Duration]struct {
		asked  int // of 50, when the first is told that there is room
		within time.Duration
	}{
		5 * time.Millisecond:  {50, 5*2*time.Millisecond + time.Millisecond},
		16 * time.Millisecond: {50, 16*2*time.Millisecond + 3*time.Millisecond},
		22 * time.Millisecond: {50, 22*time.Millisecond + 4*time.Millisecond},
		40 * time.Millisecond: {50, 40*time.Millisecond + 7*time.Millisecond},
	} {
		t.Run(trip.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				allow, asked := false, 0
				var mu sync.Mutex
				s := fakeFar(timeout, trip, func(_ context.Context, c *call) error {
					mu.Lock()
					asked += len(c.questions)
					mu.Unlock()
					time.Sleep(trip)
					for _, q := range c.questions {
						q.decisions[0] = algorithms.Decision{Allowed: allow, Remaining: 5, RetryAfter: 100 * time.Millisecond}
					}
					return nil
				})
				ask := func() (algorithms.Decision, error) {
					var d [1]algorithms.Decision
					err := s.Take(t.Context(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, d[:])
					return d[0], err
				}
				if d, err := ask(); err != nil || d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				time.Sleep(100 * time.Millisecond)
				allow, asked = true, 0
				var all sync.WaitGroup
				for range want.asked {
					all.Go(func() {
						begun := time.Now()
						if d, err := ask(); err != nil || !d.Allowed {
							t.Errorf("%+v, %v", d, err)
						}
						if took := time.Since(begun); took > want.within {
							t.Errorf("it took %v, want at most %v", took, want.within)
						}
					})
				}
				all.Wait()
				if asked != want.asked {
					t.Errorf("%d asked, want %d", asked, want.asked)
				}
				time.Sleep(2 * idleTime)
			})
		})
	}
}
