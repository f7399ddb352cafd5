package stats

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, time.Microsecond, 49 * time.Microsecond, 51 * time.Microsecond, time.Second, time.Hour} {
		h.Observe(d)
	}
	count, sum, buckets := h.Read(FirstServerBound)
	if count != 6 || sum < 3601 || sum > 3602 {
		t.Errorf("%d, %v", count, sum)
	}
	if buckets[50e-6] != 3 || buckets[100e-6] != 4 || buckets[1] != 5 || buckets[5] != 5 || len(buckets) != len(bounds)-FirstServerBound {
		t.Errorf("buckets %v", buckets)
	}
}
