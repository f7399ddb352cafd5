package main

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// span is how much time the picture shows.
const span = 18 * time.Second

// traffic returns when requests come: a burst in the middle of a window, a pause, a burst on
// each side of a window's edge, and a steady flow above the limit.
func traffic() (at []time.Duration) {
	add := func(from time.Duration, n int, gap time.Duration) {
		for i := range n {
			at = append(at, from+time.Duration(i)*gap)
		}
	}
	const ms = time.Millisecond
	add(500*ms, 8, 90*ms)
	add(5300*ms, 6, 90*ms)
	add(6050*ms, 6, 90*ms)
	add(9500*ms, 20, 400*ms)
	return at
}

// lane is one algorithm in the picture.
type lane struct {
	name, option string
	limit        algorithms.Limit
}

// lanes returns the algorithms. All but the last have a limit of six requests in three
// seconds.
func lanes() []lane {
	limit := func(change func(*algorithms.Limit)) algorithms.Limit {
		l := algorithms.Limit{Events: 6, Window: 3 * time.Second}
		if change != nil {
			change(&l)
		}
		return l
	}
	return []lane{
		{"sliding_window_log", "", limit(nil)},
		{"sliding_window_counter", "", limit(nil)},
		{"token_bucket", "", limit(nil)},
		{"token_bucket", "refill interval", limit(func(l *algorithms.Limit) { l.Refill = algorithms.RefillInterval })},
		{"leaky_bucket", "mode queue", limit(func(l *algorithms.Limit) { l.Mode = algorithms.ModeQueue })},
		{"fixed_window", "", limit(nil)},
		{"fixed_window", "align first_request", limit(func(l *algorithms.Limit) { l.Align = algorithms.AlignFirstRequest })},
		{"concurrency", "2 at once, each takes 0.4 s", algorithms.Limit{Events: 2}},
	}
}

// served is how long a request takes, for the concurrency limit.
const served = 400 * time.Millisecond

// outcome is the decision on a request.
type outcome struct {
	at      time.Duration
	allowed bool
	delay   time.Duration
}

// decide sends the traffic through a lane's algorithm.
func (l lane) decide(traffic []time.Duration) []outcome {
	a, err := algorithms.Get(l.name)
	if err != nil {
		panic(err)
	}
	params, err := a.Prepare(l.limit)
	if err != nil {
		panic(err)
	}
	// The picture begins at a multiple of the window, so windows begin with it.
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	var state algorithms.State
	var log algorithms.Log
	var leases algorithms.Leases
	outcomes := make([]outcome, len(traffic))
	for i, at := range traffic {
		now := start + at.Microseconds()
		var d algorithms.Decision
		switch a := a.(type) {
		case algorithms.Counter:
			state, d = a.Take(state, params, now, 1)
		case algorithms.Recorder:
			if d = a.Decide(&log, params, now, 1); d.Allowed {
				a.Record(&log, params, now, 1, 0)
			}
		case algorithms.Leaser:
			for j := range i {
				if outcomes[j].allowed && outcomes[j].at+served <= at {
					leases.GiveBack(fmt.Sprint(j), 1)
				}
			}
			if d = a.Decide(&leases, params, now, 1); d.Allowed {
				a.Lease(&leases, params, now, 1, fmt.Sprint(i))
			}
		}
		outcomes[i] = outcome{at, d.Allowed, d.Delay}
	}
	return outcomes
}
