package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// workersEnd is after the goroutines of a node have ended that make calls.
const workersEnd = 2 * time.Second

// fakeStore returns a store whose Redis is a function. It must be made in the bubble of a test.
func fakeStore(o *Options, trip time.Duration, send func(ctx context.Context, requests []*node.Request) error) *Store {
	s := &Store{operators: operators{timeout: o.Timeout, keys: "rl"}, logger: zap.NewNop}
	slots := 1
	if o.Mode == ModeCluster {
		slots = topology.Slots
	}
	s.servers = topology.NewFixed(node.Fake(&node.Config{Timeout: o.Timeout}, trip, send), slots)
	s.stack(o)
	s.today = func() int64 { return 0 }
	return s
}

// TestRefusedJustNow: requests that cannot be answered in time are refused, with a short wait, if
// their key was refused a moment before they came. That does not hold for other keys, independent
// zones, and refusals that ended long ago; and an answer of Redis in time takes precedence.
func TestRefusedJustNow(t *testing.T) {
	const timeout, trip = 50 * time.Millisecond, 40 * time.Millisecond
	const wait = 100 * time.Millisecond // the wait that Redis names
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 10, Window: time.Second})
	other := storetest.Rule(t, "other", "token_bucket", algorithms.Limit{Events: 10, Window: time.Second})
	synctest.Test(t, func(t *testing.T) {
		late, allow := false, false
		s := fakeStore(&Options{Timeout: timeout, DenyCache: time.Second}, trip, func(ctx context.Context, requests []*node.Request) error {
			if late {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(trip)
			for _, r := range requests {
				for i := range r.Ops {
					r.Decisions[r.Ops[i].Index] = algorithms.Decision{Allowed: allow, Quota: 10, Remaining: 5, RetryAfter: wait, NextAfter: wait, ResetAfter: time.Second}
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
				// The timeout counts from when the call is sent, and calls to a Redis that is far away are sent apart.
				if took := time.Since(begun); took > timeout+trip {
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
		time.Sleep(workersEnd)
	})
}

// TestPartsThatAreLeft: if a request in parts runs out of time, the parts that a call still has
// are not touched any more.
func TestPartsThatAreLeft(t *testing.T) {
	t.Parallel()
	const tries = 20 // on a machine that may be too busy to notice in time that the client has left
	for range tries {
		if leaveParts(t) != nil {
			return
		}
	}
	t.Errorf("%d times answered before it could be", tries)
}

// leaveParts takes checks of two slots, and leaves while they are under way. It returns the error of the request.
func leaveParts(t *testing.T) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun, calls := make(chan bool, 9), make(chan bool, 9)
	var n atomic.Int32
	s := fakeStore(&Options{Mode: ModeCluster, Timeout: 10 * time.Second}, time.Microsecond, func(_ context.Context, requests []*node.Request) error {
		if n.Add(1) == 2 {
			cancel()
		}
		begun <- true
		defer func() { calls <- true }()
		time.Sleep(100 * time.Millisecond) // a channel would order this and the reading, and hide a race
		for _, r := range requests {
			r.Decisions[0].Quota, r.Damaged = 1, nil
		}
		return nil
	})
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1, Window: time.Hour})
	checks := []store.Check{{Rule: rule, Key: "a", Cost: 1}, {Rule: rule, Key: "b", Cost: 1}}
	go func() { // the parts wait for its calls
		var d [1]algorithms.Decision
		_ = s.Take(context.Background(), checks[:1], d[:])
	}()
	<-begun
	err := s.Take(ctx, checks, make([]algorithms.Decision, 2))
	<-calls
	<-calls
	return err
}
