package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestOutstanding: of those who wait for a Redis that hangs, each is let go when its own
// time is over or its caller leaves; none is kept, and none gets an answer of another.
func TestOutstanding(t *testing.T) {
	const timeout = 100 * time.Millisecond
	server := redistest.Start(t)
	s := newStore(t, server, timeout)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1_000_000, Align: algorithms.AlignFirstRequest, Window: time.Hour})
	ask := func(ctx context.Context, key string, cost int64) (algorithms.Decision, error) {
		var d [1]algorithms.Decision
		err := s.Take(ctx, []store.Check{{Rule: rule, Key: key, Cost: cost}}, d[:])
		return d[0], err
	}
	if _, err := ask(context.Background(), "first", 1); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		server.Freeze()
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%3 == 0 {
					time.AfterFunc(timeout/4, cancel)
				}
				begin := time.Now()
				_, err := ask(ctx, fmt.Sprint(i), 1)
				took := time.Since(begin)
				if err == nil {
					t.Error("a Redis that hangs has answered")
				}
				if took > timeout+5*time.Second { // sanity, not speed
					t.Errorf("it took %v", took)
				}
			})
		}
		all.Wait()
		server.Thaw()
		well := 0
		for deadline := time.Now().Add(20 * time.Second); well < 20; time.Sleep(timeout / 10) {
			if _, err := ask(context.Background(), "first", 1); err == nil {
				well++ // calls from before may still fail
			} else if well = 0; time.Now().After(deadline) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		for i := range 60 {
			all.Go(func() {
				key := fmt.Sprint(round, "client", i)
				if d, err := ask(context.Background(), key, int64(i)); err != nil || d.Remaining != 1_000_000-int64(i) {
					t.Errorf("%s: %v, %+v", key, err, d)
				}
			})
		}
		all.Wait()
	}
	b := &s.topology.(single).only.batcher
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(timeout / 10) {
		b.mu.Lock()
		left := b.first != nil || b.last != nil || b.head != nil || b.set || b.waiting+b.underWay+b.calls != 0
		b.mu.Unlock()
		if !left {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("something is left of those who waited")
		}
	}
}

// TestTooLateToAsk: whoever runs out of time before he has made his call does not make
// it, and his question keeps nothing that the next to use it would take for its own.
func TestTooLateToAsk(t *testing.T) {
	b := &batcher{
		timeout: time.Microsecond, epoch: time.Now(), idle: make(chan struct{}),
		send: func(context.Context, *call) error { return nil },
	}
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	late := 0
	for range 100_000 {
		b.mu.Lock()
		b.shared = true // as under load: others have their turn first
		b.mu.Unlock()
		q := newQuestion()
		q.alone(item{rule: rule, prepared: rule.At(0), key: "k", cost: 1})
		if err := b.ask(context.Background(), q); err != nil {
			late++
		} else if len(q.done) > 0 {
			t.Fatalf("a question that was answered also holds: %v", <-q.done)
		}
	}
	if late == 0 {
		t.Error("nobody was too late")
	}
}

// TestPartsThatAreLeft: of a request in parts, those that a call still has when their time
// is over are not looked at any more.
func TestPartsThatAreLeft(t *testing.T) {
	s := newStore(t, redistest.Start(t), 10*time.Second)
	s.slots = true
	b := &s.topology.(single).only.batcher
	begun, calls := make(chan bool, 9), make(chan bool, 9)
	b.send = func(_ context.Context, c *call) error {
		begun <- true
		defer func() { calls <- true }()
		time.Sleep(100 * time.Millisecond) // a channel would order this and the reading, and hide a race
		for _, q := range c.questions {
			q.decisions[0].Quota, q.damaged = 1, nil
		}
		return nil
	}
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1, Window: time.Hour})
	checks := []store.Check{{Rule: rule, Key: "a", Cost: 1}, {Rule: rule, Key: "b", Cost: 1}}
	first := newQuestion() // whose call the parts wait for
	first.alone(s.item(&checks[0], opDecide, "", 0))
	go func() { _ = b.ask(context.Background(), first) }()
	<-begun
	b.mu.Lock()
	b.shared = true // so that the parts step back, and wait for others to call
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-begun
		cancel()
	}()
	if err := s.Take(ctx, checks, make([]algorithms.Decision, 2)); err == nil {
		t.Error("answered before it could be")
	}
	<-calls
	<-calls
}
