package redisstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestSlotOfALateCall: a call comes to Redis after its slot was given back, because its connection is slower than another.
// The slot comes back all the same, long before its lease ends.
func TestSlotOfALateCall(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	options := at(server)
	options.Address, options.Timeout = proxy.Addr(), 100*time.Millisecond
	s := open(t, options)
	slots := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 1, Lease: time.Hour})
	count := storetest.Rule(t, "count", "fixed_window", algorithms.Limit{Events: 9, Window: 1000 * time.Hour})
	decisions := make([]algorithms.Decision, 2)
	patient.Until(t, "the script to be known", func() bool {
		return s.Take(t.Context(), []store.Check{{Rule: count, Key: "warm", Cost: 1}}, decisions[:1]) == nil
	})

	var held atomic.Bool
	late := make(chan struct{})
	proxy.Inject(func(name string) faultproxy.Fault {
		if (name == "evalsha" || name == "eval") && held.CompareAndSwap(false, true) {
			<-late
		}
		return faultproxy.None
	})
	checks := []store.Check{
		{Rule: slots, Key: "k", Cost: 1, LeaseID: storetest.LeaseID(slots)},
		{Rule: count, Key: "k", Cost: 1},
	}
	if err := s.Take(t.Context(), checks, decisions); err == nil || !held.Load() {
		t.Fatalf("%v; held up: %v", err, held.Load())
	}
	patient.Until(t, "the slot to be given back", func() bool { return s.Waiting() == 0 })
	close(late)
	admin := server.Admin()
	patient.Until(t, "the call to be carried out", func() bool { return admin.Exists(t.Context(), s.Key(count, "k")).Val() == 1 })
	patient.Until(t, "the slot to come back", func() bool { return server.Slots(s.Key(slots, "k")) == 0 })
}
