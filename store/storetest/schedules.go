package storetest

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// requests are those of a client in rounds, each after a wait.
type requests struct {
	wait         time.Duration
	rounds, each int
	pass         int // of all rounds
}

// until are requests up to the moment at which all of a limit is back, and from then on.
func until(moment time.Duration, pass int) []requests {
	return []requests{{0, 1, 9, pass}, {moment - µs, 1, 9, 0}, {µs, 1, 9, pass}}
}

// From Start to the next second and so on. In Paris the next day begins at 23:00 UTC.
const (
	toSecond = 321_099 * µs
	toMinute = 54*time.Second + toSecond
	toHour   = 55*time.Minute + toMinute
	toDay    = 7*time.Hour + toHour
	ms       = time.Millisecond
	µs       = time.Microsecond
)

// schedule is a limit and requests of a client to it.
type schedule struct {
	what, algorithm string
	limit           algorithms.Limit
	requests        []requests
}

// ofOthers are schedules in which other limiters have or had defects.
var ofOthers = []schedule{
	{
		"Traefik forgets a bucket before it is full again: it admits 300 in 6.6 s",
		"token_bucket",
		algorithms.Limit{Events: 1, Window: time.Second, Burst: 100},
		[]requests{{0, 1, 200, 100}, {2200 * ms, 3, 200, 6}},
	},
	{"APISIX limit-req lets 7 through in 6.5 s", "token_bucket", per(1, 10*time.Second), []requests{{100 * ms, 65, 1, 1}}},
	{
		"Spring Cloud Gateway counts in whole seconds: it admits 100 within 80 ms over a second's edge",
		"token_bucket", per(50, time.Second),
		[]requests{{toSecond - 40*ms, 1, 50, 50}, {80 * ms, 1, 50, 4}},
	},
	{
		"KrakenD refills only when the bucket is empty: it admits 21 at once after a pause",
		"token_bucket",
		algorithms.Limit{Events: 1, Window: time.Second, Burst: 10},
		[]requests{{0, 1, 1, 1}, {20 * time.Second, 1, 30, 10}},
	},
	{
		"ShenYu's TTL is floor(2*capacity/rate), which is 0 where the rate is high",
		"token_bucket",
		algorithms.Limit{Events: 1_000_000, Window: time.Second, Burst: 3},
		[]requests{{0, 1, 10, 3}, {2 * µs, 1, 10, 2}},
	},
	{
		"ShenYu counts events that are a window old; mholt's ring does not count the one that they let in",
		"sliding_window_log", per(2, time.Second),
		[]requests{{0, 1, 1, 1}, {400 * ms, 1, 5, 1}, {600*ms - µs, 1, 5, 0}, {µs, 1, 5, 1}, {399 * ms, 1, 5, 0}},
	},
	{"Tyk stores refused requests: it admits 5 under fire instead of 25", "sliding_window_log", per(5, time.Second), []requests{{100 * ms, 50, 3, 25}}},
	{
		"a window ends though each event could renew its expiry",
		"fixed_window", per(5, time.Minute),
		[]requests{{toMinute, 1, 2, 2}, {time.Second, 179, 2, 13}},
	},
}

// ofOptions are schedules that show the options of algorithms.
func ofOptions(b *bench) []schedule {
	paris, err := time.LoadLocation("Europe/Paris")
	b.ok(err)
	return []schedule{
		{"windows start on the clock", "fixed_window", per(3, time.Hour), until(toHour, 3)},
		{
			"and with the first request",
			"fixed_window",
			algorithms.Limit{Events: 2, Window: time.Minute, Align: algorithms.AlignFirstRequest},
			[]requests{{0, 1, 1, 1}, {40 * time.Second, 1, 3, 1}, {20 * time.Second, 1, 3, 2}, {10 * time.Minute, 1, 3, 2}},
		},
		{"and with days", "fixed_window", algorithms.Limit{Events: 2, Calendar: algorithms.Day, Location: paris}, until(toDay, 2)},
		{
			"a refill in intervals",
			"token_bucket",
			algorithms.Limit{Events: 3, Window: time.Second, Refill: algorithms.RefillInterval},
			[]requests{{0, 1, 1, 1}, {700 * ms, 1, 5, 2}, {300*ms - µs, 1, 5, 0}, {µs, 1, 5, 3}},
		},
		{
			"a queue with a longest wait",
			"leaky_bucket",
			algorithms.Limit{Events: 10, Window: time.Second, Burst: 50, Mode: algorithms.ModeQueue, MaxWait: 250 * ms},
			[]requests{{0, 1, 9, 3}, {50*ms - µs, 1, 1, 0}, {µs, 1, 2, 1}},
		},
		{
			"leases of holders that crashed end",
			"concurrency",
			algorithms.Limit{Events: 2, Lease: 10 * time.Minute},
			[]requests{{0, 1, 1, 1}, {time.Minute, 1, 5, 1}, {9*time.Minute - µs, 1, 5, 0}, {µs, 1, 5, 1}},
		},
	}
}

// schedules tests for defects that other limiters have or had, and what the options of algorithms are.
func schedules(b *bench) {
	for _, c := range slices.Concat(ofOthers, ofOptions(b)) {
		b, rule := b.another(), Rule(b, "zone", c.algorithm, c.limit)
		for i, r := range c.requests {
			pass := 0
			for range r.rounds {
				b.wait(r.wait)
				pass += b.admitted(rule, "client", r.each)
			}
			if pass != r.pass {
				b.Errorf("%s: %d of line %d pass, want %d", c.what, pass, i+1, r.pass)
			}
		}
	}
}
