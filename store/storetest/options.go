package storetest

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// options tests the options of algorithms.
func options(t *testing.T, open Open) {
	t.Run("RefillInInterval", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 3, Window: time.Second, Refill: algorithms.RefillInterval})
		equal(t, "first", b.admitted(rule, "client", 1), 1)
		b.wait(700 * time.Millisecond)
		equal(t, "the rest", b.admitted(rule, "client", 5), 2)
		equal(t, "retry", b.take(rule, "client", 1).RetryAfter, 300*time.Millisecond)
		b.wait(300*time.Millisecond - time.Microsecond)
		equal(t, "a microsecond before the refill", b.admitted(rule, "client", 5), 0)
		b.wait(time.Microsecond)
		equal(t, "all at once", b.admitted(rule, "client", 5), 3)
	})

	t.Run("GCRAIsATokenBucket", func(t *testing.T) {
		b := start(t, open)
		gcra, bucket := Rule(t, "zone", "gcra", per(4, time.Minute)), Rule(t, "zone", "token_bucket", per(4, time.Minute))
		equal(t, "under one name", b.admitted(gcra, "client", 3), 3)
		equal(t, "under the other", b.admitted(bucket, "client", 3), 1)
	})

	t.Run("QueueSpacesRequests", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "leaky_bucket", algorithms.Limit{Events: 3, Window: time.Second, Burst: 4, Mode: algorithms.ModeQueue})
		var last time.Duration
		for i := range 4 {
			d := b.take(rule, "client", 1)
			if !d.Allowed || i == 0 && d.Delay != 0 || i > 0 && (d.Delay-last < 333333*time.Microsecond || d.Delay-last > 333334*time.Microsecond) {
				t.Fatalf("request %d after %v: %s", i+1, last, describe(d))
			}
			last = d.Delay
		}
		full := b.take(rule, "client", 1)
		if full.Allowed || full.Delay != 0 || full.RetryAfter != 333334*time.Microsecond {
			t.Fatalf("a full queue: %s", describe(full))
		}
		b.wait(full.RetryAfter)
		equal(t, "there is room", b.take(rule, "client", 1).Delay, time.Second)
	})

	t.Run("QueueWithALongestWait", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "leaky_bucket", algorithms.Limit{
			Events: 10, Window: time.Second, Burst: 50, Mode: algorithms.ModeQueue, MaxWait: 250 * time.Millisecond,
		})
		equal(t, "those that wait at most 250 ms", b.admitted(rule, "client", 9), 3)
		d := b.take(rule, "client", 1)
		equal(t, "retry", d.RetryAfter, 50*time.Millisecond)
		b.wait(d.RetryAfter - time.Microsecond)
		equal(t, "early", b.take(rule, "client", 1).Allowed, false)
		b.wait(time.Microsecond)
		equal(t, "then", b.take(rule, "client", 1).Delay, 250*time.Millisecond)
	})

	t.Run("WindowFromTheFirstRequest", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 2, Window: time.Minute, Align: algorithms.AlignFirstRequest})
		equal(t, "first", b.admitted(rule, "client", 1), 1)
		b.wait(40 * time.Second)
		equal(t, "second", b.admitted(rule, "client", 3), 1)
		equal(t, "retry", b.take(rule, "client", 1).RetryAfter, 20*time.Second)
		b.wait(20 * time.Second)
		equal(t, "a new window", b.admitted(rule, "client", 3), 2)
		b.wait(10 * time.Minute)
		b.take(rule, "client", 1)
		equal(t, "a window that starts with a request", b.take(rule, "client", 0).ResetAfter, time.Minute)
	})

	t.Run("WindowsOfTheCalendar", func(t *testing.T) {
		paris, err := time.LoadLocation("Europe/Paris")
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMicro(Start)
		for calendar, next := range map[algorithms.Calendar]time.Time{
			algorithms.Day:   time.Date(2026, 11, 19, 0, 0, 0, 0, paris),
			algorithms.Week:  time.Date(2026, 11, 23, 0, 0, 0, 0, paris),
			algorithms.Month: time.Date(2026, 12, 1, 0, 0, 0, 0, paris),
			algorithms.Year:  time.Date(2027, 1, 1, 0, 0, 0, 0, paris),
		} {
			b := start(t, open)
			rule := Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 2, Calendar: calendar, Location: paris})
			equal(t, "in this window", b.admitted(rule, "client", 5), 2)
			wait := b.take(rule, "client", 1).RetryAfter
			equal(t, calendar.String(), now.Add(wait).UTC(), next.UTC())
			b.wait(wait - time.Microsecond)
			equal(t, "a microsecond before the next", b.admitted(rule, "client", 5), 0)
			b.wait(time.Microsecond)
			equal(t, "in the next", b.admitted(rule, "client", 5), 2)
		}
	})
}
