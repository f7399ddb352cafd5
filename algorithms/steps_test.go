package algorithms_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// start is 250 ms after a full second, minute and hour.
var start = time.Date(2026, 11, 18, 15, 0, 0, 250e6, time.UTC)

// must ends a test that has an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// key is one key of any algorithm.
type key struct {
	algorithm algorithms.Algorithm
	state     algorithms.State
	log       algorithms.Log
	leases    algorithms.Leases
	asked     int
}

func newKey(t testing.TB, name string) *key {
	a, err := algorithms.Get(name)
	must(t, err)
	return &key{algorithm: a}
}

func (k *key) take(p algorithms.Params, now, cost int64) algorithms.Decision {
	k.asked++
	return k.ask(p, now, cost, 0, strconv.Itoa(k.asked))
}

// ask takes a cost, and units ahead. The lease is for slots.
func (k *key) ask(p algorithms.Params, now, cost, ahead int64, lease string) (d algorithms.Decision) {
	lasts := int64(0)
	switch a := k.algorithm.(type) {
	case algorithms.Counter:
		if k.state, d = a.Take(k.state, p, now, cost); d.Allowed && ahead > 0 {
			k.state, d.Units, lasts = a.Ahead(k.state, p, now, cost, ahead)
		}
	case algorithms.Recorder:
		if d = a.Decide(&k.log, p, now, cost); d.Allowed && cost+ahead > 0 {
			d.Units, lasts = a.Record(&k.log, p, now, cost, ahead)
		}
	case algorithms.Leaser:
		if d = a.Decide(&k.leases, p, now, cost); d.Allowed && cost > 0 {
			a.Lease(&k.leases, p, now, cost, lease)
		}
	}
	if d.Units > 0 {
		d.Lasts = time.Duration(lasts) * time.Microsecond
	}
	return d
}

// adjust adjusts a charge.
func (k *key) adjust(p algorithms.Params, now, at, turn, delta int64, lease string) {
	switch a := k.algorithm.(type) {
	case algorithms.Counter:
		k.state = a.Adjust(k.state, p, now, at, turn, delta)
	case algorithms.Recorder:
		a.Adjust(&k.log, p, now, at, delta)
	case algorithms.Leaser:
		k.leases.GiveBack(lease, -delta)
	}
}

// TestPrepareErrors: the error for an invalid limit shows the value and the bound. testdata/configs.txt has most of them.
func TestPrepareErrors(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		algorithm string
		limit     algorithms.Limit
		want      string
	}{
		{"token_bucket", algorithms.Limit{Events: -1, Window: second}, "events must be from 0 to 1000000000000, got -1"},
		{"token_bucket", algorithms.Limit{Events: 1_000_000_000_001, Window: second}, "events must be from 0 to 1000000000000, got 1000000000001"},
		{"fixed_window", algorithms.Limit{Events: 1, Window: algorithms.MaxWindow + second}, "window must be from 1ms to 3660d, got 87840h0m1s"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: second, Burst: -5}, "burst must be from 0 to 1000000000000, got -5"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: second, Burst: 1_000_000_000_001}, "burst must be from 0 to 1000000000000, got 1000000000001"},
		{"token_bucket", algorithms.Limit{Events: 1, Window: 24 * time.Hour, Burst: 3661}, "burst 3661 takes 3661 days to come back at 1 per 1d, must be at most 3660 days"},
		{"sliding_window_log", algorithms.Limit{Events: 50_000_001, Window: second}, "events must be at most 50000000 for sliding_window_log, got 50000001; use algorithm token_bucket"},
		{"sliding_window_counter", algorithms.Limit{Events: 1, Window: second, Refill: "smooth"}, "refill has no meaning for sliding_window_counter, got smooth; it is for token_bucket"},
		{"leaky_bucket", algorithms.Limit{Events: 1, Window: 24 * time.Hour, Burst: 3661}, "burst 3661 takes 3661 days to come back at 1 per 1d, must be at most 3660 days"},
		{"concurrency", algorithms.Limit{Events: 1_000_001}, "events must be at most 1000000 for concurrency, got 1000001"},
		{"concurrency", algorithms.Limit{Events: 1, Lease: time.Second + 1}, "lease must be a whole number of microseconds, got 1.000000001s"},
	} {
		a, err := algorithms.Get(c.algorithm)
		must(t, err)
		if _, err := a.Prepare(c.limit); err == nil || err.Error() != c.want {
			t.Errorf("%s %+v:\ngot  %v\nwant %s", c.algorithm, c.limit, err, c.want)
		}
	}
}

// TestRefusalsDropNoLease: a refused request writes nothing but that leases from before a step of the clock
// end sooner, as in Lua. So a lease that has ended counts again when the clock goes back to before its end.
func TestRefusalsDropNoLease(t *testing.T) {
	const second = int64(1_000_000)
	var leases algorithms.Leases
	slots, params := algorithms.Concurrency{}, algorithms.Params{3, 60 * second}
	hour := 3600 * second
	slots.Lease(&leases, params, 48*hour, 2, "before the step")
	slots.Lease(&leases, params, 39*hour, 1, "short")
	if d := slots.Decide(&leases, params, 40*hour, 2); d.Allowed || d.RetryAfter.Seconds() != 60 || leases.Len() != 2 {
		t.Errorf("%+v, and %d leases are kept, want both", d, leases.Len())
	}
	if d := slots.Decide(&leases, params, 39*hour, 1); d.Allowed {
		t.Errorf("when the clock is back: %+v", d)
	}
}

// TestLogTakesWhatItHolds: the memory of a log depends on its number of charges. It depends
// neither on the limit, which in mholt/caddy-ratelimit took 4.8 GB, nor on the costs.
func TestLogTakesWhatItHolds(t *testing.T) {
	for _, cost := range []int64{1, 50_000_000} {
		var log algorithms.Log
		for i := range int64(10_000) {
			log.Append(i, cost)
			if room, held := log.Room(), log.Len(); room > held+held/4+1 {
				t.Fatalf("room for %d charges, %d held", room, held)
			}
		}
		for log.Len() > 0 {
			log.Forget(min(log.Len(), 777))
			if room, held := log.Room(), log.Len(); room > 2*held+1 {
				t.Fatalf("room for %d charges after some are forgotten, %d held", room, held)
			}
		}
	}
}
