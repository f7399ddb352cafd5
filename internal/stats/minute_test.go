package stats

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMinute: what was counted within the last 50 seconds is known, and what is older than a minute is forgotten.
func TestMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Histogram
		m := Follow(&h)
		defer m.Stop()
		read := func() (n uint64, mean, p50, p99 time.Duration) {
			synctest.Wait()
			d := m.Read()
			return d.Count(), d.Mean(), d.Quantile(0.5), d.Quantile(0.99)
		}
		expect := func(when string, wantN uint64, wantMean, want50, want99 time.Duration) {
			t.Helper()
			if n, mean, p50, p99 := read(); n != wantN || mean != wantMean || p50 != want50 || p99 != want99 {
				t.Errorf("%s: %d, mean %v, p50 %v, p99 %v", when, n, mean, p50, p99)
			}
		}
		expect("at first", 0, 0, 0, 0)
		for range 98 {
			h.Observe(time.Millisecond)
		}
		h.Observe(2 * time.Millisecond)
		h.Observe(time.Hour)
		expect("at once", 100, (99*time.Millisecond+time.Millisecond+time.Hour)/100, 755102*time.Nanosecond, 2*time.Millisecond)
		time.Sleep(45 * time.Second)
		for range 100 {
			h.Observe(15 * time.Millisecond)
		}
		if n, _, _, _ := read(); n != 200 {
			t.Errorf("after 45 s: %d", n)
		}
		time.Sleep(15 * time.Second)
		expect("after a minute", 100, 15*time.Millisecond, 15*time.Millisecond, 19900*time.Microsecond)
		time.Sleep(time.Minute)
		expect("after two", 0, 0, 0, 0)
	})
}
