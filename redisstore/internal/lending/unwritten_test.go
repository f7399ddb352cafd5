package lending_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/lending"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// readOnly is a lender on the real clock that for a while cannot write: it decides, lends nothing, and notes nothing.
type readOnly struct {
	*lender
	unable    atomic.Bool
	unwritten atomic.Int64 // asks that it did not note
}

// AskTogether implements [lending.Lender].
func (l *readOnly) AskTogether(ctx context.Context, asks []*link.Ask) error {
	l.SetNow(time.Now().UnixMicro())
	l.mu.Lock()
	kept := make(map[*lend.Key]lend.Key)
	for _, a := range asks {
		k := l.key(a.Check)
		counter := *k.Account.(*lend.Counter)
		if kept[k] = (lend.Key{Account: &counter, Book: slices.Clone(k.Book)}); l.unable.Load() {
			a.Want = 0
		}
	}
	l.mu.Unlock()
	err := l.lender.AskTogether(ctx, asks)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unable.Load() {
		for k, before := range kept {
			*k = before
		}
		for _, a := range asks {
			a.Unwritten = true
			l.unwritten.Add(1)
		}
	}
	return err
}

// AskEach implements [lending.Lender].
func (l *readOnly) AskEach(ctx context.Context, asks []*link.Ask) {
	for i := range asks {
		asks[i].Err = l.AskTogether(ctx, asks[i:i+1])
	}
}

// TestUnwrittenReports: what a process has spent of a loan is charged, and the rest comes back, although the store
// could not note it at first: when a request asked, or when the loan was due.
func TestUnwrittenReports(t *testing.T) {
	counter, err := algorithms.Get("fixed_window")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 100_000
	rule, err := store.NewLendingRule("z", counter, algorithms.Limit{Events: limit, Window: 240 * time.Hour}, 0, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for name, meet := range map[string]func(below *readOnly, ask func(cost int64)){
		"a request asks": func(_ *readOnly, ask func(int64)) { ask(limit) }, // what is refused needs no write
		"it is due": func(below *readOnly, _ func(int64)) {
			for below.unwritten.Load() == 0 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			below, done := &readOnly{lender: &lender{Below: layertest.New(t), keys: make(map[string]*lend.Key)}}, make(chan struct{})
			top := lending.New(below, &lending.Config{Loans: loans.New(), Lender: below, PerCall: link.MaxPerCall, Timeout: time.Second, Done: done})
			go top.Tend()
			passed := int64(0)
			ask := func(cost int64) {
				below.SetNow(time.Now().UnixMicro())
				decisions := make([]algorithms.Decision, 1)
				if err := top.Take(t.Context(), []store.Check{{Rule: rule, Key: "k", Cost: cost}}, decisions); err != nil {
					t.Fatal(err)
				}
				if decisions[0].Allowed {
					passed += cost
				}
			}
			held := func() int64 {
				lent, _ := top.Loans.Held(top.Loans.Now())
				return lent["z"]
			}
			for held() < 20 {
				ask(1)
				time.Sleep(time.Millisecond)
			}
			below.unable.Store(true)
			meet(below, ask)
			below.unable.Store(false)
			if below.unwritten.Load() == 0 {
				t.Errorf("%s: the store noted every ask", name)
			}
			time.Sleep(time.Minute) // when each loan has come back, or is over and counts as spent
			below.SetNow(time.Now().UnixMicro())
			check := store.Check{Rule: rule, Key: "k"}
			a := link.Ask{Check: &check, Peek: true}
			if err := below.AskTogether(t.Context(), []*link.Ask{&a}); err != nil {
				t.Fatal(err)
			}
			if a.Lent != 0 || limit-a.Remaining != passed {
				t.Errorf("%s: %d passed, %d used, %d lent", name, passed, limit-a.Remaining, a.Lent)
			}
			close(done)
			top.Wait()
		})
	}
}
