package multislot_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/multislot"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// link is a layer below in this process, which takes no request of several slots.
type link struct {
	*memorystore.Store
	mixed atomic.Int64 // calls with keys of several slots
}

func (l *link) Adjust(adjustments ...layer.Adjustment) {
	for i := range adjustments {
		l.Store.Adjust(adjustments[i].Adjustment)
	}
}

func (l *link) Forget(*store.Rule, string) {}

func (l *link) Slot(c *store.Check) uint16 { return topology.SlotOf(keys.Tag(c.Key)) }

func (l *link) TakePart(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, _ bool) error {
	slot := l.Slot(&checks[0])
	if slices.ContainsFunc(checks, func(c store.Check) bool { return l.Slot(&c) != slot }) {
		l.mixed.Add(1)
		return errors.New("CROSSSLOT")
	}
	return l.Take(ctx, checks, decisions)
}

func (l *link) TakeKey(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, _ bool) error {
	return l.Take(ctx, checks, decisions)
}

// stack is a store that is made of the layer.
type stack struct {
	*memorystore.Store
	top multislot.Layer
}

func (s *stack) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if err := layer.Validate(checks); err != nil || len(checks) == 0 {
		return err
	}
	return s.top.Take(ctx, checks, decisions)
}

func (s *stack) Adjust(adjustments ...store.Adjustment) { s.top.Adjust(layer.Of(adjustments...)...) }

// TestContract: requests of several slots obey the contract of stores.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		var now atomic.Int64
		memory, err := memorystore.New(memorystore.Options{Now: now.Load})
		if err != nil {
			t.Fatal(err)
		}
		below := &link{Store: memory}
		s := &stack{Store: memory, top: multislot.Layer{Inner: below, GiveBack: below.Adjust}}
		t.Cleanup(func() {
			if n := below.mixed.Load(); n > 0 {
				t.Errorf("%d calls had keys of several slots", n)
			}
			_ = s.Close()
		})
		return s, now.Store
	})
}
