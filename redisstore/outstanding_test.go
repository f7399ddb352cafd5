package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestOutstanding: of those who wait for a Redis that hangs, each is let go when its own
// time is over or its caller leaves; none is kept, and none gets an answer of another.
func TestOutstanding(t *testing.T) {
	patient.BesideOthers(t)
	const timeout = 200 * time.Millisecond
	server := redistest.Start(t)
	s := newStore(t, server, timeout)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1_000_000, Align: algorithms.AlignFirstRequest, Window: time.Hour})
	ask := func(ctx context.Context, key string, cost int64) (algorithms.Decision, error) {
		var d [1]algorithms.Decision
		err := s.Take(ctx, []store.Check{{Rule: rule, Key: key, Cost: cost}}, d[:])
		return d[0], err
	}
	patient.Until(t, "an answer", func() bool {
		_, err := ask(context.Background(), "first", 1)
		return err == nil
	})
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
				if err == nil {
					t.Error("a Redis that hangs has answered")
				}
				patient.Soon(t, "to be let go", time.Since(begin), timeout+5*time.Second)
			})
		}
		all.Wait()
		server.Thaw()
		well := 0
		patient.Until(t, "answers", func() bool {
			time.Sleep(timeout / 10)
			if _, err := ask(context.Background(), "first", 1); err == nil {
				well++ // calls from before may still fail
			} else {
				well = 0
			}
			return well == 20
		})
		for i := range 60 {
			all.Go(func() {
				var d algorithms.Decision
				tries := 0
				patient.Until(t, "an answer", func() (ok bool) { // on a busy machine Redis may be late
					var err error
					tries++
					d, err = ask(context.Background(), fmt.Sprint(round, "client", i, "try", tries), int64(i))
					return err == nil
				})
				if d.Remaining != 1_000_000-int64(i) {
					t.Errorf("client %d: %+v", i, d)
				}
			})
		}
		all.Wait()
	}
	b := &s.topology.(single).only.batcher
	patient.Until(t, "nothing to be left of those who waited", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.first == nil && b.last == nil && b.head == nil && !b.set && b.waiting+b.underWay+b.calls == 0
	})
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
	t.Parallel()
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
