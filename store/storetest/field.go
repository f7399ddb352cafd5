package storetest

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// field tests for defects that other limiters have or had. Each test names the limiter.
func field(t *testing.T, open Open) {
	// Traefik forgets a bucket before it is full again: at 1/s with a burst of 100 it
	// admits 300 in 6.6 s.
	t.Run("IdleGapAfterABurst", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1, Window: time.Second, Burst: 100})
		passed := b.admitted(rule, "client", 200)
		for range 3 {
			b.wait(2200 * time.Millisecond)
			passed += b.admitted(rule, "client", 200)
		}
		equal(t, "admitted in 6.6 s", passed, 106)
	})

	// APISIX limit-req at one in ten seconds lets 7 through in 6.5 s.
	t.Run("SlowRate", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", per(1, 10*time.Second))
		passed := 0
		for range 65 {
			passed += b.admitted(rule, "client", 1)
			b.wait(100 * time.Millisecond)
		}
		equal(t, "admitted in 6.5 s", passed, 1)
	})

	// Spring Cloud Gateway counts in whole seconds: rate and burst 50 admit 100 within
	// 80 ms over a second's edge.
	t.Run("SecondsEdge", func(t *testing.T) {
		b := start(t, open)
		b.wait(time.Duration(1_000_000-Start%1_000_000-40_000) * time.Microsecond)
		rule := Rule(t, "zone", "token_bucket", per(50, time.Second))
		passed := b.admitted(rule, "client", 50)
		b.wait(80 * time.Millisecond)
		passed += b.admitted(rule, "client", 50)
		equal(t, "admitted over the edge", passed, 54)
	})

	// KrakenD refills only when the bucket is empty: 1/s, capacity 10 admits 21 at once
	// after a pause.
	t.Run("PauseWithTokensLeft", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1, Window: time.Second, Burst: 10})
		equal(t, "one", b.admitted(rule, "client", 1), 1)
		b.wait(20 * time.Second)
		equal(t, "after the pause", b.admitted(rule, "client", 30), 10)
	})

	// ShenYu's TTL is floor(2*capacity/rate), which is 0 where the rate is high.
	t.Run("FastRateHasALifetime", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1_000_000, Window: time.Second, Burst: 3})
		equal(t, "at once", b.admitted(rule, "client", 10), 3)
		b.wait(2 * time.Microsecond)
		equal(t, "two microseconds later", b.admitted(rule, "client", 10), 2)
	})

	// ShenYu counts events before it drops the expired ones; mholt's ring does not count the
	// request that an expired event lets in.
	t.Run("EventOneWindowOld", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "sliding_window_log", per(2, time.Second))
		equal(t, "first", b.admitted(rule, "client", 1), 1)
		b.wait(400 * time.Millisecond)
		equal(t, "second", b.admitted(rule, "client", 5), 1)
		b.wait(600*time.Millisecond - time.Microsecond)
		equal(t, "a microsecond before the first is a window old", b.admitted(rule, "client", 5), 0)
		b.wait(time.Microsecond)
		equal(t, "when it is", b.admitted(rule, "client", 5), 1)
		b.wait(399 * time.Millisecond)
		equal(t, "the one it let in counts", b.admitted(rule, "client", 5), 0)
	})

	// Tyk stores refused requests: 5 of 50 admitted under fire instead of 25.
	t.Run("HammeredLog", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "sliding_window_log", per(5, time.Second))
		passed := 0
		for range 50 {
			passed += b.admitted(rule, "client", 3)
			b.wait(100 * time.Millisecond)
		}
		equal(t, "admitted in 5 s", passed, 25)
	})

	// If each event renewed the expiry, a window would never end.
	t.Run("WindowEndsUnderLoad", func(t *testing.T) {
		b := start(t, open)
		b.wait(time.Duration(60_000_000-Start%60_000_000) * time.Microsecond)
		rule := Rule(t, "zone", "fixed_window", per(5, time.Minute))
		passed := 0
		for range 180 {
			passed += b.admitted(rule, "client", 2)
			b.wait(time.Second)
		}
		equal(t, "admitted in three windows", passed, 15)
	})

	t.Run("FixedWindowsStartOnTheClock", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "fixed_window", per(3, time.Hour))
		equal(t, "in this hour", b.admitted(rule, "client", 9), 3)
		d := b.take(rule, "client", 1)
		next := time.UnixMicro(Start).UTC().Truncate(time.Hour).Add(time.Hour)
		equal(t, "retry", d.RetryAfter, next.Sub(time.UnixMicro(Start)))
		b.wait(d.RetryAfter)
		equal(t, "in the next hour", b.admitted(rule, "client", 9), 3)
	})

	// Rates at the bounds: no drift, no overflow.
	t.Run("NumbersAtTheirLimits", func(t *testing.T) {
		for _, limit := range []algorithms.Limit{
			per(1, 365*24*time.Hour),
			per(1_000_000_000, 365*24*time.Hour),
			per(999_999_937, 365*24*time.Hour),
			per(1_000_000, time.Second),
			per(7, time.Second),
			{Events: 7, Window: time.Second, Burst: 1},
			{Events: 900_001, Window: time.Second, Burst: 1},
			{Events: 999_999_937, Window: 365 * 24 * time.Hour, Burst: algorithms.MaxEvents / 1000},
			per(algorithms.MaxEvents, algorithms.MaxWindow),
			per(1, algorithms.MaxWindow),
		} {
			b, rule := start(t, open), Rule(t, "zone", "token_bucket", limit)
			quota := b.take(rule, "client", 0).Quota
			d := b.take(rule, "client", quota)
			if !d.Allowed || d.Remaining != 0 {
				t.Fatalf("%+v: all at once: %s", limit, describe(d))
			}
			wait := b.take(rule, "client", 1).RetryAfter
			exact := (limit.Window.Microseconds() + limit.Events - 1) / limit.Events
			equal(t, "one event back after", wait.Microseconds(), exact)
			half := quota - quota/2
			wait = b.take(rule, "client", half).RetryAfter
			b.wait(wait - time.Microsecond)
			equal(t, "half, early", b.take(rule, "client", half).Allowed, false)
			b.wait(time.Microsecond)
			equal(t, "half", b.take(rule, "client", half).Allowed, true)
		}
	})
}
