//go:build deep

package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestDeadlines: while Redis hangs, each request that waits for it ends when its own time is over
// or its caller leaves. None is kept, and none gets the answer of another.
func TestDeadlines(t *testing.T) {
	patient.BesideOthers(t)
	const timeout = 200 * time.Millisecond
	server := redistest.Start(t)
	n := open(t, server.Addr(), timeout)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1_000_000, Align: algorithms.AlignFirstRequest, Window: time.Hour})
	ask := func(ctx context.Context, key string, cost int64) (algorithms.Decision, error) {
		r := request(rule, key, cost)
		if err := n.Do(ctx, r, false); err != nil {
			return algorithms.Decision{}, err // a call may still write to it
		}
		return r.Decisions[0], nil
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
				patient.Until(t, "an answer", func() (ok bool) { // on a busy machine, Redis may be late
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
	b := n.batcher
	patient.Until(t, "nothing to be left of those who waited", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.deadlines.first == nil && b.deadlines.last == nil && b.head == nil && !b.deadlines.set && b.waiting+b.underWay+b.calls == 0
	})
}
