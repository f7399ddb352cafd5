package redisstore_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// runner makes requests that hold slots, and counts how many of them run.
type runner struct {
	running, most, passed, refused, failed atomic.Int64
}

// request makes a request of some checks, of which the first is of slots, and runs meanwhile.
func (r *runner) request(s *redisstore.Store, checks []store.Check, run func()) {
	decisions := make([]algorithms.Decision, len(checks))
	for i := range checks {
		if _, leases := checks[i].Rule.Algorithm().(algorithms.Leaser); leases {
			checks[i].LeaseID = store.NewLeaseID()
		}
	}
	if err := s.Take(context.Background(), checks, decisions); err != nil {
		r.failed.Add(1)
		return
	}
	for i := range decisions {
		if !decisions[i].Allowed {
			r.refused.Add(1)
			return
		}
	}
	n := r.running.Add(1)
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
	}
	run()
	r.passed.Add(1)
	r.running.Add(-1)
	s.Adjust(store.Adjustment{Check: checks[0], At: decisions[0].Booked(), Turn: decisions[0].Turn(), Delta: -checks[0].Cost})
}

// slotsRule is a limit of concurrency of which slots are kept.
func slotsRule(t testing.TB, slots int64, lease, period time.Duration) *store.Rule {
	t.Helper()
	return lendingRule(t, "slots", "concurrency", algorithms.Limit{Events: slots, Lease: lease}, period)
}

// TestLendSlots: three processes that keep slots never have more requests running than the limit, make
// few calls below it, and give everything back.
func TestLendSlots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stores := make([]*redisstore.Store, 3)
	for i := range stores {
		stores[i] = open(t, redisstore.Options{Address: server.Addr()})
	}
	rule := slotsRule(t, 40, time.Minute, 10*time.Second)
	flood := func(requests, atOnce int) *runner {
		var r runner
		var wait sync.WaitGroup
		for i := range atOnce {
			wait.Go(func() {
				for range requests / atOnce {
					r.request(stores[i%3], []store.Check{{Rule: rule, Key: "k", Cost: 1}}, runtime.Gosched)
				}
			})
		}
		wait.Wait()
		return &r
	}
	flood(300, 12) // the keys come often from now on
	before := calls(t, server)
	r := flood(3000, 12)
	if made := calls(t, server) - before; r.refused.Load() > 0 || r.failed.Load() > 0 || made > 600 {
		t.Errorf("12 at once: %d refused, %d failed, %d calls for 3000 requests", r.refused.Load(), r.failed.Load(), made)
	}
	if r = flood(3000, 120); r.most.Load() > 40 || r.most.Load() < 20 || r.failed.Load() > 0 {
		t.Errorf("120 at once: %d ran, want 20 to 40; %d failed", r.most.Load(), r.failed.Load())
	}
	closeAll(t, stores)
	patient.UntilEqual(t, "slots in use", func() int64 { return used(t, server, rule) }, 0)
}

// TestLendSlotsOfRareKeys: of a key that came once, no slot is kept.
func TestLendSlotsOfRareKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := slotsRule(t, 10, time.Minute, 10*time.Second)
	var r runner
	r.request(s, []store.Check{{Rule: rule, Key: "k", Cost: 1}}, func() {})
	s.Flush()
	if n := used(t, server, rule); n != 0 {
		t.Errorf("%d slots in use", n)
	}
	for range 10 {
		r.request(s, []store.Check{{Rule: rule, Key: "k", Cost: 1}}, func() {})
	}
	s.Flush()
	if lent, held := s.Stats().Lent["slots"], s.Stats().InUse["slots"]; used(t, server, rule) != 1 || lent != 1 || held != 0 {
		t.Errorf("%d slots in use, %d kept, %d held, want 1 that is kept", used(t, server, rule), lent, held)
	}
	if err := s.Reset(context.Background(), rule, "k"); err != nil {
		t.Fatal(err)
	}
	if lent := s.Stats().Lent["slots"]; lent != 0 {
		t.Errorf("%d slots are kept after a reset", lent)
	}
}

// TestLendSlotsAreReturned: what is kept is given back when no request comes any more.
func TestLendSlotsAreReturned(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := slotsRule(t, 10, time.Minute, 50*time.Millisecond)
	var r runner
	for s.Stats().Lent["slots"] == 0 {
		r.request(s, []store.Check{{Rule: rule, Key: "k", Cost: 1}}, func() {})
	}
	patient.UntilEqual(t, "slots in use", func() int64 { return used(t, server, rule) }, 0)
}

// TestLendSlotsFaults: while requests, replies and connections to Redis are lost, never more requests run
// than the limit, in no zone of theirs, and each request is charged in all its zones or in none.
func TestLendSlotsFaults(t *testing.T) {
	t.Parallel()
	const slots = 9
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	stores := make([]*redisstore.Store, 3)
	for i := range stores {
		stores[i] = open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 50 * time.Millisecond})
	}
	rule := slotsRule(t, slots, time.Minute, 20*time.Millisecond)
	lent := lendingRule(t, "lent", "fixed_window", algorithms.Limit{Events: 2000, Window: 1000 * time.Hour}, 100*time.Millisecond)
	plain, err := store.NewRule("plain", lent.Algorithm(), algorithms.Limit{Events: 2100, Window: 1000 * time.Hour}, 0)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Inject(func(command string) faultproxy.Fault {
		if command != "evalsha" || rand.Float64() > 0.02 {
			return faultproxy.None
		}
		return faultproxy.Fault(1 + rand.IntN(6))
	})
	var r runner
	var lentPassed, plainPassed atomic.Int64
	var wait sync.WaitGroup
	for i := range 18 {
		wait.Go(func() {
			for range deep.Steps(100, 2000) {
				checks := []store.Check{{Rule: rule, Key: "k", Cost: 1}}
				with := rand.IntN(4)
				if with&1 > 0 {
					checks = append(checks, store.Check{Rule: lent, Key: "k", Cost: 1})
				}
				if with&2 > 0 {
					checks = append(checks, store.Check{Rule: plain, Key: "k", Cost: 1})
				}
				r.request(stores[i%3], checks, func() {
					runtime.Gosched()
					lentPassed.Add(int64(with & 1))
					plainPassed.Add(int64(with >> 1))
				})
			}
		})
	}
	wait.Wait()
	if most := r.most.Load(); most > slots {
		t.Errorf("%d requests ran at once, want at most %d", most, slots)
	}
	t.Logf("%d passed, %d refused, %d failed", r.passed.Load(), r.refused.Load(), r.failed.Load())
	if n := lentPassed.Load(); n > 2000 || n > used(t, server, lent) {
		t.Errorf("%d passed, %d used", n, used(t, server, lent))
	}
	if n := plainPassed.Load(); n > 2100 || n > used(t, server, plain) {
		t.Errorf("%d passed in the zone that does not lend, %d used", n, used(t, server, plain))
	}
	if r.passed.Load() < 10 {
		t.Error("hardly any request passed")
	}
}
