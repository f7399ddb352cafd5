package refusals_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// looking looks at what a refused request leaves out: of checks that would be refused for the sake of another, the
// layer tells nothing.
type looking struct {
	layer.Layer
	below *layertest.Below
}

func (l *looking) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := l.Layer.Take(ctx, checks, decisions)
	refused := slices.ContainsFunc(decisions, func(d algorithms.Decision) bool { return !d.Allowed })
	for i := range checks {
		if err == nil && refused && decisions[i] == (algorithms.Decision{Allowed: true}) {
			c := checks[i]
			c.Peek = true
			err = l.below.Take(ctx, []store.Check{c}, decisions[i:i+1])
		}
	}
	return err
}

// TestContract: with refusals that are remembered, answers are those of the contract of stores, waits included.
// After the clock of the store has gone back, that holds as soon as what is remembered has ended.
func TestContract(t *testing.T) {
	var hits uint64
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		below, c := layertest.New(t), refusals.NewCache(maxTTL, recent)
		today := layer.Date(below.Now)
		var since atomic.Int64 // on the clock of the process
		c.SetClock(func() time.Duration { return time.Duration(since.Load()) })
		top := &refusals.Layer{Layer: below, Cache: c, Today: &today}
		t.Cleanup(func() { hits += c.Hits() })
		return &layertest.Store{Store: below.Store, Top: &looking{top, below}}, func(now int64) {
			passed := time.Duration(now-below.Now()) * time.Microsecond
			if passed < 0 {
				passed = maxTTL
			}
			since.Add(int64(passed))
			below.SetNow(now)
		}
	})
	if hits < 100 {
		t.Errorf("only %d requests were refused from memory", hits)
	}
}
