package stats

import (
	"testing"
	"time"
)

// TestMinute: what was counted within the last 55 seconds is known, and what is older than a minute is forgotten.
func TestMinute(t *testing.T) {
	var h Histogram
	var m Minute
	number := int64(1)
	pass := func(seconds int64) {
		for range seconds / 5 {
			number++
			m.Sample(number, &h)
		}
	}
	expect := func(when string, wantN uint64, want50, want99 time.Duration) {
		t.Helper()
		d := m.Read(&h)
		if n, p50, p99 := d.Count(), d.Quantile(0.5), d.Quantile(0.99); n != wantN || p50 != want50 || p99 != want99 {
			t.Errorf("%s: %d, p50 %v, p99 %v", when, n, p50, p99)
		}
	}
	expect("at first", 0, 0, 0)
	for range 98 {
		h.Observe(time.Millisecond)
	}
	h.Observe(2 * time.Millisecond)
	h.Observe(time.Hour)
	expect("at once", 100, 755102*time.Nanosecond, 2*time.Millisecond)
	pass(50)
	for range 100 {
		h.Observe(15 * time.Millisecond)
	}
	if d := m.Read(&h); d.Count() != 200 {
		t.Errorf("after 50 s: %d", d.Count())
	}
	pass(10)
	expect("after a minute", 100, 15*time.Millisecond, 19900*time.Microsecond)
	number += 100 // nobody has sampled for a while
	m.Sample(number, &h)
	expect("later", 0, 0, 0)
}
