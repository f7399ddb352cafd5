package multislot_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/multislot"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// link is a layer below in this process, which takes no request of several slots.
type link struct {
	*layertest.Below
	mixed atomic.Int64 // calls with keys of several slots
	lent  string       // the key of which parts are lent
}

func (l *link) Slot(c *store.Check) uint16 { return topology.SlotOf(keys.Tag(c.Key)) }

func (l *link) TakeSlot(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, _ bool) error {
	slot := l.Slot(&checks[0])
	if slices.ContainsFunc(checks, func(c store.Check) bool { return l.Slot(&c) != slot }) {
		l.mixed.Add(1)
		return errors.New("CROSSSLOT")
	}
	if l.lent != "" && slices.ContainsFunc(checks, func(c store.Check) bool { return c.Key == l.lent }) {
		return protocol.ErrLent
	}
	return l.Take(ctx, checks, decisions)
}

func (l *link) TakeMigrating(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, _ bool) error {
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

// TestLentKeepsWhatIsAlone: if parts of a key are lent, what was charged with it is given back, because it is asked for
// again. What is decided by itself is not asked for again: it stays charged, and the caller learns of it.
func TestLentKeepsWhatIsAlone(t *testing.T) {
	below := &link{Below: layertest.New(t), lent: "lent"}
	below.SetNow(storetest.Start)
	top := &multislot.Layer{Inner: below, GiveBack: below.Adjust}
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 9, Window: time.Hour})
	checks := []store.Check{
		{Rule: rule, Key: "together", Cost: 1}, {Rule: rule, Key: "lent", Cost: 1}, {Rule: rule, Key: "alone", Cost: 1, Independent: true},
	}
	decisions := make([]algorithms.Decision, len(checks))
	if err := top.Take(t.Context(), checks, decisions); !errors.Is(err, protocol.ErrLent) || decisions[2].Remaining != 8 {
		t.Errorf("%v, %+v", err, decisions)
	}
	for i := range checks {
		checks[i].Peek = true
	}
	if err := below.Take(t.Context(), checks, decisions); err != nil || decisions[0].Remaining != 9 || decisions[2].Remaining != 8 {
		t.Errorf("%v; %d are left together, %d alone", err, decisions[0].Remaining, decisions[2].Remaining)
	}
}
