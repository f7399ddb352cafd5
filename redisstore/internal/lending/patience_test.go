package lending_test

import (
	"context"
	"testing"
	"testing/synctest"
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

// loses is a lender that finds parts of every key lent to another process, some time after a request has come, and loses
// the first ask.
type loses struct {
	*lender
	takes chan time.Duration
	lost  chan struct{} // closed when the ask has come
	done  <-chan struct{}
}

func (l *loses) Take(context.Context, []store.Check, []algorithms.Decision) error {
	time.Sleep(<-l.takes)
	return protocol.ErrLent
}

func (l *loses) AskTogether(ctx context.Context, asks []*link.Ask) error {
	select {
	case <-l.lost:
		return l.lender.AskTogether(ctx, asks)
	default:
		close(l.lost)
		<-l.done
		return context.DeadlineExceeded
	}
}

// TestPatienceBeginsWithTheRequest: a request waits for what another one asks until half of its own time is over, whatever it has done
// before. The other half is for an ask of its own.
func TestPatienceBeginsWithTheRequest(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for came, answered := range map[time.Duration]time.Duration{
		400 * time.Millisecond: 500 * time.Millisecond,
		600 * time.Millisecond: 600 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan struct{})
			below := &loses{
				lender: &lender{Below: layertest.New(t), keys: make(map[string]*lend.Key)},
				takes:  make(chan time.Duration, 1), lost: make(chan struct{}), done: done,
			}
			below.SetNow(storetest.Start)
			top := lending.New(below, &lending.Config{Loans: loans.New(), Lender: below, PerCall: link.MaxPerCall, Timeout: timeout, Done: done})
			go top.Tend()
			rule, err := store.NewLendingRule("z", algorithms.FixedWindow{}, algorithms.Limit{Events: 1000, Window: time.Hour}, 0, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			take := func() error {
				var d [1]algorithms.Decision
				err := top.Take(t.Context(), []store.Check{{Rule: rule, Key: "k", Cost: 1}}, d[:])
				if err == nil && !d[0].Allowed {
					t.Errorf("refused: %+v", d[0])
				}
				return err
			}
			below.takes <- came
			began, waits, asks := time.Now(), make(chan error, 1), make(chan error, 1)
			go func() { waits <- take() }()
			synctest.Wait()
			below.takes <- 0
			go func() { asks <- take() }()
			<-below.lost
			if err := <-waits; err != nil || time.Since(began) != answered {
				t.Errorf("it knows after %v that parts are lent: %v after %v, want an answer after %v", came, err, time.Since(began), answered)
			}
			close(done)
			if err := <-asks; err == nil {
				t.Error("the first ask was not lost")
			}
			top.Wait()
		})
	}
}
