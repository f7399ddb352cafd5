package store_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestSplit(t *testing.T) {
	const window = time.Minute
	for _, c := range []struct {
		algorithm     string
		events, burst int64
		n             int
		wantEvents    int64
		wantBurst     int64
	}{
		{"token_bucket", 100, 0, 1, 100, 0},
		{"token_bucket", 100, 0, 4, 25, 0},
		{"token_bucket", 100, 250, 3, 33, 83},
		{"token_bucket", 100, 100, 1000, 1, 1},
		{"fixed_window", 5, 0, 2, 2, 0},
		{"sliding_window_log", 1, 0, 9, 1, 0},
		{"sliding_window_counter", 0, 0, 9, 0, 0},
		{"concurrency", 10, 0, 4, 2, 0},
	} {
		limit := storetest.Limit(c.algorithm, c.events, window)
		limit.Burst = c.burst
		whole := storetest.Rule(t, "zone", c.algorithm, limit)
		part := whole.Split(c.n)
		got := part.Limit()
		if got.Events != c.wantEvents || got.Burst != c.wantBurst {
			t.Errorf("%s %d burst %d by %d: %d burst %d, want %d burst %d",
				c.algorithm, c.events, c.burst, c.n, got.Events, got.Burst, c.wantEvents, c.wantBurst)
		}
		if got.Window != limit.Window || got.Lease != limit.Lease || part.ID() != whole.ID() || part.Salt() != whole.Salt() {
			t.Errorf("%s: %+v is a part of %+v", c.algorithm, got, limit)
		}
		if whole.Split(c.n) != part {
			t.Errorf("%s: the same part is made twice", c.algorithm)
		}
		if c.n > 1 && whole.Split(c.n+1) == part {
			t.Errorf("%s: parts for %d and %d are the same", c.algorithm, c.n, c.n+1)
		}
	}
	whole := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 9, Window: window})
	if whole.Split(0) != whole {
		t.Error("split for no process is not the whole")
	}
}

// TestSplitOfASlowBurst: rounding must not make a valid limit invalid.
func TestSplitOfASlowBurst(t *testing.T) {
	a, err := algorithms.Get("token_bucket")
	if err != nil {
		t.Fatal(err)
	}
	limit := algorithms.Limit{Events: 3, Window: 1000 * 24 * time.Hour, Burst: 10}
	whole, err := store.NewRule("zone", a, limit, 7)
	if err != nil {
		t.Fatal(err)
	}
	// At 1 per 1000 days, a third of 10 comes back in 3000 days, but half of 10 in 5000.
	for n, want := range map[int]int64{3: 3, 2: 0} {
		if got := whole.Split(n).Limit(); got.Events != 1 || got.Burst != want {
			t.Errorf("split by %d: %+v, want 1 with a burst of %d", n, got, want)
		}
	}
}
