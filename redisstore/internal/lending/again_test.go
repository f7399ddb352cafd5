package lending_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/lending"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// lateAnswer is a lender that finds parts of every key lent to another process, and lends two with the first ask that borrows, the answer to which
// is late, or is lost.
type lateAnswer struct {
	*lender
	after time.Duration
	lost  bool
	first sync.Once
}

func (l *lateAnswer) Take(context.Context, []store.Check, []algorithms.Decision) error {
	return protocol.ErrLent
}

func (l *lateAnswer) AskTogether(ctx context.Context, asks []*link.Ask) error {
	first := false
	if asks[0].Number > 0 {
		l.first.Do(func() { first, asks[0].Want = true, 2 })
	}
	err := l.lender.AskTogether(ctx, asks)
	if first {
		if time.Sleep(l.after); l.lost {
			return context.DeadlineExceeded
		}
	}
	return err
}

// TestLooksAgain: requests that have waited long ask for themselves, while the answer to another one's ask is under way. What that has lent
// to their own process counts as used for them. None of them is refused because of it: whether it can be spent, has come too
// late for that, or its answer was lost.
func TestLooksAgain(t *testing.T) {
	t.Parallel()
	const timeout, limit = time.Second, 10
	for name, is := range map[string]struct {
		lend, after time.Duration
		lost        bool
		pass        int64
	}{
		"a loan that lasts":          {lend: time.Second, after: 900 * time.Millisecond, pass: limit},
		"a loan that comes too late": {lend: 100 * time.Millisecond, after: 600 * time.Millisecond, pass: limit},
		"an answer that is lost":     {lend: time.Second, after: 600 * time.Millisecond, lost: true, pass: limit - 1},
		"no answer in time":          {lend: time.Second, after: time.Minute, pass: limit - 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			below := &lateAnswer{
				lender: &lender{Below: layertest.New(t), keys: make(map[string]*lend.Key)},
				after:  is.after, lost: is.lost,
			}
			below.SetNow(storetest.Start)
			done := make(chan struct{})
			memory := &refusals.Layer{Layer: below, Cache: refusals.NewCache(time.Second, time.Second), Today: new(layer.Date)}
			top := lending.New(below, &lending.Config{Loans: loans.New(), Lender: below, PerCall: link.MaxPerCall, Timeout: timeout, Refusals: memory, Done: done})
			go top.Tend()
			rule, err := store.NewLendingRule("z", algorithms.FixedWindow{}, algorithms.Limit{Events: limit, Window: time.Hour}, 0, is.lend)
			if err != nil {
				t.Fatal(err)
			}
			passed, began := make(chan int64, limit), time.Now()
			for range limit {
				go func() {
					var d [1]algorithms.Decision
					n := int64(0)
					if err := top.Take(t.Context(), []store.Check{{Rule: rule, Key: "k", Cost: 1}}, d[:]); err == nil && d[0].Allowed {
						n = 1
					}
					passed <- n
				}()
			}
			all := int64(0)
			for range limit {
				all += <-passed
			}
			if all != is.pass {
				t.Errorf("%s: %d of %d pass, want %d", name, all, limit, is.pass)
			}
			if all == limit && !memory.Empty() {
				t.Errorf("%s: a refusal is remembered", name)
			}
			if took := time.Since(began); took > max(timeout, is.after) {
				t.Errorf("%s: a request was decided after %v", name, took)
			}
			close(done)
			top.Wait()
		})
	}
}
