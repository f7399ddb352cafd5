package multislot_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/multislot"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// link is a layer below in this process, which takes no request of several slots.
type link struct {
	*layertest.Below
	mixed atomic.Int64 // calls with keys of several slots
}

func (l *link) Slot(c *store.Check) uint16 { return topology.SlotOf(keys.Tag(c.Key)) }

func (l *link) TakeSlot(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, _ bool) error {
	slot := l.Slot(&checks[0])
	if slices.ContainsFunc(checks, func(c store.Check) bool { return l.Slot(&c) != slot }) {
		l.mixed.Add(1)
		return errors.New("CROSSSLOT")
	}
	return l.Take(ctx, checks, decisions)
}

// TestContract: requests of several slots obey the contract of stores.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		below := &link{Below: layertest.New(t)}
		t.Cleanup(func() {
			if n := below.mixed.Load(); n > 0 {
				t.Errorf("%d calls had keys of several slots", n)
			}
		})
		return &layertest.Store{Store: below.Store, Top: &multislot.Layer{Inner: below, GiveBack: below.Adjust}}, below.SetNow
	})
}
