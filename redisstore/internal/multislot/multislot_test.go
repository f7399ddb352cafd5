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

// TestRefusalIsGivenBack: what one zone refuses leaves those in other slots as they were, whatever their algorithms and
// keys are.
func TestRefusalIsGivenBack(t *testing.T) {
	below := &link{Below: layertest.New(t)}
	top := &multislot.Layer{Inner: below, GiveBack: below.Adjust}
	limits := map[string]algorithms.Limit{"leaky_bucket": {Events: 9, Window: time.Hour, Burst: 9, Mode: algorithms.ModeQueue}}
	for _, name := range algorithms.Names() {
		if _, queue := limits[name]; !queue {
			limits[name] = storetest.Limit(name, 9, time.Hour)
		}
	}
	for name, limit := range limits {
		for _, key := range []string{"", "a"} {
			once := storetest.Limit("fixed_window", 1, 24*time.Hour)
			full := store.Check{Rule: storetest.Rule(t, "full"+name, "fixed_window", once), Key: "b" + key, Cost: 1}
			other := store.Check{Rule: storetest.Rule(t, "other", name, limit), Key: key, Cost: 1}
			for n := range 3 {
				other.LeaseID = storetest.LeaseID(other.Rule)
				d := make([]algorithms.Decision, 2)
				if err := top.Take(t.Context(), []store.Check{other, full}, d); err != nil || d[1].Allowed != (n == 0) {
					t.Fatalf("%s, %q: %+v, %v", name, key, d, err)
				}
				peek := other
				peek.Peek = true
				if err := below.Take(t.Context(), []store.Check{peek}, d[:1]); err != nil || d[0].Remaining != 8 {
					t.Errorf("%s, %q, request %d: %+v, %v", name, key, n+1, d[0], err)
				}
			}
		}
	}
}
