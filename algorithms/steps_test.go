package algorithms_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// start is 250 ms after a full second, minute and hour.
var start = time.Date(2026, 11, 18, 15, 0, 0, 250e6, time.UTC)

// key is one key of any algorithm.
type key struct {
	algorithm algorithms.Algorithm
	state     algorithms.State
	log       algorithms.Log
	leases    algorithms.Leases
	holds     int
}

func newKey(t testing.TB, name string) *key {
	a, err := algorithms.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return &key{algorithm: a}
}

func (k *key) take(p algorithms.Params, now, cost int64) (d algorithms.Decision) {
	switch a := k.algorithm.(type) {
	case algorithms.Counter:
		k.state, d = a.Take(k.state, p, now, cost)
	case algorithms.Recorder:
		if d = a.Decide(&k.log, p, now, cost); d.Allowed && cost > 0 {
			a.Record(&k.log, p, now, cost)
		}
	case algorithms.Leaser:
		if d = a.Decide(&k.leases, p, now, cost); d.Allowed && cost > 0 {
			k.holds++
			a.Lease(&k.leases, p, now, cost, strconv.Itoa(k.holds))
		}
	}
	return d
}

// TestPrepareErrors: the error for an invalid limit shows the value and the bound.
func TestPrepareErrors(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		algorithm string
		limit     algorithms.Limit
		want      string
	}{
		{"token_bucket", algorithms.Limit{Events: -1, Window: second}, "events must be at least 0, got -1"},
		{"token_bucket", algorithms.Limit{Events: 1_000_000_000_001, Window: second}, "events must be at most 1000000000000, got 1000000000001"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: 999 * time.Microsecond}, "window must be at least 1ms, got 999µs"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: algorithms.MaxWindow + second}, "window must be at most 3660d, got 87840h0m1s"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: second + 1}, "window must be a whole number of microseconds, got 1.000000001s"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: second, Burst: -5}, "burst must be at least 0, got -5"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: second, Burst: 1_000_000_000_001}, "burst must be at most 1000000000000, got 1000000000001"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: 24 * time.Hour, Burst: 3661}, "burst 3661 takes 3661 days to come back at 1 per 1d, must be at most 3660 days"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: second, Burst: 2}, "burst has no meaning for fixed_window, got 2; use algorithm token_bucket or leaky_bucket"},
		{"sliding_window_log", algorithms.Limit{Events: 1, Window: second, Burst: 2}, "burst has no meaning for sliding_window_log, got 2; use algorithm token_bucket or leaky_bucket"},
		{"sliding_window_log", algorithms.Limit{Events: 50_000_001, Window: second}, "events must be at most 50000000 for sliding_window_log, got 50000001; use algorithm token_bucket"},
		{"sliding_window_counter", algorithms.Limit{Events: 1, Window: second, Refill: "smooth"}, "refill has no meaning for sliding_window_counter, got smooth; it is for token_bucket"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: second, Refill: "slow"}, `refill must be smooth or interval, got "slow"`},
		{"leaky_bucket", algorithms.Limit{Events: 1, Window: second, Mode: "cue"}, `mode must be meter or queue, got "cue"`},
		{"leaky_bucket", algorithms.Limit{Events: 1, Window: 24 * time.Hour, Burst: 3661}, "burst 3661 takes 3661 days to come back at 1 per 1d, must be at most 3660 days"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: second, Align: "wall"}, `align must be clock or first_request, got "wall"`},
		{"fixed_window", algorithms.Limit{Events: 1, Calendar: algorithms.Day, Align: "first_request"}, "window day is a calendar window: use align clock, or a duration such as 24h"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: second, Location: time.UTC}, "timezone is for windows of a day, week, month or year, got window 1s"},
		{"token_bucket", algorithms.Limit{Events: 1, Calendar: algorithms.Day}, "window has no meaning for token_bucket, got day; use algorithm fixed_window, or a duration such as 24h"},
		{"concurrency", algorithms.Limit{Events: 1_000_001}, "events must be at most 1000000 for concurrency, got 1000001"},
		{"concurrency", algorithms.Limit{Events: 1, Lease: 2 * time.Hour}, "lease must be from 1s to 1h, got 2h"},
		{"concurrency", algorithms.Limit{Events: 1, Lease: time.Second + 1}, "lease must be a whole number of microseconds, got 1.000000001s"},
		{"concurrency", algorithms.Limit{Events: 1, Window: second}, "window has no meaning for concurrency, got 1s; a slot is taken for as long as the request runs"},
	} {
		a, err := algorithms.Get(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Prepare(c.limit); err == nil || err.Error() != c.want {
			t.Errorf("%s %+v:\ngot  %v\nwant %s", c.algorithm, c.limit, err, c.want)
		}
	}
}

func TestUnknownAlgorithm(t *testing.T) {
	_, err := algorithms.Get("tocken_bucket")
	const want = `unknown algorithm "tocken_bucket" (did you mean "token_bucket"?), must be one of concurrency, fixed_window, leaky_bucket, sliding_window_counter, sliding_window_log, token_bucket`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
