package lending_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/lending"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// lender is a layer below in this process, which lends.
type lender struct {
	*layertest.Below

	mu   sync.Mutex
	keys map[string]*lend.Key
	asks int
}

// key returns what is kept of a key of a zone that lends. The lock is held.
func (l *lender) key(c *store.Check) *lend.Key {
	id := c.Rule.ID() + c.Key
	k := l.keys[id]
	if k == nil {
		k = new(lend.Key)
		switch a, p := c.Rule.Algorithm(), c.Rule.At(l.Now()).Params; a := a.(type) {
		case algorithms.Counter:
			k.Account = &lend.Counter{Algorithm: a, Params: p}
		case algorithms.Recorder:
			k.Account = &lend.Log{Algorithm: a, Params: p, Log: new(algorithms.Log)}
		}
		l.keys[id] = k
	}
	return k
}

// Take decides checks of zones that do not lend. One of a zone that lends comes first, with none but such that are
// decided by themselves, and is refused an answer while parts of its key are lent.
func (l *lender) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if !checks[0].Rule.LendsParts() {
		return l.Below.Take(ctx, checks, decisions)
	}
	if len(checks) > 1 {
		if err := l.Below.Take(ctx, checks[1:], decisions[1:]); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.key(&checks[0])
	if k.Expire(l.Now()); len(k.Book) > 0 {
		return protocol.ErrLent
	}
	decisions[0] = lend.Decide(l.Now(), []*lend.Key{k}, []lend.Ask{{Cost: checks[0].Cost}})[0].Decision
	return nil
}

// AskTogether implements [lending.Lender].
func (l *lender) AskTogether(_ context.Context, asks []*link.Ask) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks++
	keys, each := make([]*lend.Key, len(asks)), make([]lend.Ask, len(asks))
	for i, a := range asks {
		if keys[i], each[i] = l.key(a.Check), a.Ask; a.Peek {
			each[i] = lend.Ask{}
		}
	}
	for i, answer := range lend.Decide(l.Now(), keys, each) {
		asks[i].LendAnswer = protocol.LendAnswer{Answer: answer, Lent: keys[i].Book.Held(), Borrowers: int64(len(keys[i].Book))}
	}
	return nil
}

// AskEach implements [lending.Lender].
func (l *lender) AskEach(ctx context.Context, asks []*link.Ask) {
	for i := range asks {
		asks[i].Err = l.AskTogether(ctx, asks[i:i+1])
	}
}

// TestContract: one process that borrows obeys the contract of stores, and admits what the limit allows with
// few asks.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		below, done := &lender{Below: layertest.New(t), keys: make(map[string]*lend.Key)}, make(chan struct{})
		top := lending.New(below, &lending.Config{
			Lender: below, Loans: loans.New(), PerCall: link.MaxPerCall, Timeout: time.Second, Done: done,
		})
		go top.Tend()
		t.Cleanup(func() {
			close(done)
			top.Wait()
			below.mu.Lock()
			defer below.mu.Unlock()
			for id, k := range below.keys {
				if k.Book.Held() > 0 {
					t.Errorf("%d of %q are still lent", k.Book.Held(), id)
				}
			}
			if len(below.keys) > 0 && (top.Spared.Load() == 0 || below.asks > 60) {
				t.Errorf("%d requests needed no call, %d asks", top.Spared.Load(), below.asks)
			}
		})
		return &layertest.Store{Store: below.Below.Store, Top: top}, below.SetNow
	})
}
