//go:build deep

package redisstore_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendLateCost: what a process holds pays for late costs first. So no more passes than if these had
// been charged from the beginning.
func TestLendLateCost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_window_log"} {
		s := open(t, redisstore.Options{Address: server.Addr()})
		rule := lendingRule(t, "z "+algorithm, algorithm, algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second)
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		paid := int64(0)
		var d algorithms.Decision
		pass := func() bool {
			var err error
			if d, err = decideOne(s, c); err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				paid++
			}
			return d.Allowed
		}
		patient.Until(t, "a loan", func() bool { return pass() && s.Stats().Lent[rule.Zone()] > 50 })
		held, late := s.Stats().Lent[rule.Zone()], 1000-paid
		paid += late
		s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: late})
		s.Flush()
		for pass() {
		}
		if paid > 1000 {
			t.Errorf("%s: %d of 1000 used, %d were held", algorithm, paid, held)
		}
	}
}

// TestLendLateCostUnderLoad: once Redis has charged a late cost that uses up the limit, no request passes that
// comes later, although others have asked for loans meanwhile.
func TestLendLateCostUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 2000
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		rule := lendingRule(t, "z "+algorithm, algorithm, algorithms.Limit{Events: limit, Window: 1000 * time.Hour}, 2*time.Second)
		for try := range deep.Steps(15, 50) {
			c := store.Check{Rule: rule, Key: strconv.Itoa(try), Cost: 1}
			var charged, over atomic.Bool
			var passed, tooLate atomic.Int64
			var wait sync.WaitGroup
			for range 4 {
				wait.Go(func() {
					for !over.Load() {
						after := charged.Load()
						if d, err := decideOne(s, c); err != nil {
							t.Error(err)
							return
						} else if d.Allowed {
							passed.Add(1)
							if after {
								tooLate.Add(1)
							}
						}
					}
				})
			}
			patient.Until(t, "requests", func() bool { return passed.Load() > int64(30+try) })
			var done atomic.Bool
			s.Adjust(store.Adjustment{Check: c, At: time.Now().UnixMicro(), Delta: limit, Done: done.Store})
			s.Flush()
			charged.Store(done.Load()) // on a busy machine, the answer may be late
			_, _ = decideOne(s, c)
			_, _ = decideOne(s, c)
			over.Store(true)
			wait.Wait()
			if n := tooLate.Load(); n > 0 {
				t.Errorf("%s: %d passed after all was used", algorithm, n)
			}
		}
	}
}

// TestLendLateCostsBelowLimit: while the limit is not used up, all late costs are charged once.
func TestLendLateCostsBelowLimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), Timeout: 10 * time.Second})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1_000_000, Window: 1000 * time.Hour}, 5*time.Second) // a loan that ends while this machine is busy counts as spent
	c := store.Check{Rule: rule, Key: "k", Cost: 1}
	want := int64(0)
	for range 1000 {
		d, err := decideOne(s, c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		late := rand.Int64N(20)
		want += 1 + late
		s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: late})
	}
	s.Flush()
	closed(t, s)
	patient.UntilEqual(t, "what is used", func() int64 { return used(t, server, rule) }, want)
}
