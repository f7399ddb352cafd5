package main

import "math/rand"

const (
	ms   = 1e6
	work = 40 * ms
)

// scenarios are the worlds of the table. Their promises are for each seed, never the mean: users have one
// upstream, not the mean of three.
func scenarios() []*scenario {
	var all []*scenario
	all = append(all, steady()...)
	all = append(all, fleets()...)
	all = append(all, changing()...)
	all = append(all, unfair()...)
	all = append(all, odd()...)
	return append(all, attacks()...)
}

// pool is workers of 40 ms behind 10 ms of network. 16 of them are 400 answers a second.
func pool(workers int) func() *upstream {
	return func() *upstream { return &upstream{workers: workers, delay: 10 * ms, thrash: 0.05} }
}

// processors is the same with threads that share processors.
func processors(n int) func() *upstream {
	return func() *upstream { return &upstream{workers: n, shared: true, delay: 10 * ms, thrash: 0.05} }
}

// clients ask so many times a second, each for the usual work.
func clients(keys int, perSecond float64) []group {
	return []group{crowd("all", keys, perSecond)}
}

func crowd(name string, keys int, perSecond float64) group {
	return group{name: name, keys: keys, rate: constant(perSecond), work: memoryless(work), timeout: 10e9}
}

func constant(perSecond float64) func(float64) float64 {
	return func(float64) float64 { return perSecond }
}

// between is a rate that is another one from a to b.
func between(a, b, in, out float64) func(float64) float64 {
	return func(t float64) float64 {
		if t >= a && t < b {
			return in
		}
		return out
	}
}

func memoryless(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return r.ExpFloat64() * mean }
}

func mixed(part, short, long float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < part {
			return short
		}
		return long
	}
}

func slower(f float64) func(*upstream) { return func(u *upstream) { u.slower = f } }
func workers(n int) func(*upstream)    { return func(u *upstream) { u.workers = n } }
func delayed(ns int64) func(*upstream) { return func(u *upstream) { u.delay = ns } }

// apart are clocks that differ by ns from one gate to the next.
func apart(ns int64) func(int, int64) int64 {
	return func(i int, _ int64) int64 { return int64(i) * ns }
}

// steady are upstreams that do not change, with more load than they can serve.
func steady() []*scenario {
	return []*scenario{
		{name: "16 workers", seconds: 60, up: pool(16), groups: clients(50, 1200), best: 24, share: 0.92},
		{name: "6 processors", seconds: 60, up: processors(6), groups: clients(50, 450), best: 8, share: 0.92},
		{
			name: "200 workers, first 30 s", seconds: 30, up: func() *upstream { return &upstream{workers: 200, delay: 20 * ms, thrash: 0.05} },
			groups: clients(500, 10000), best: 256, share: 0.92,
		},
		{name: "one worker", seconds: 90, up: func() *upstream { return &upstream{workers: 1, thrash: 0.05} }, groups: clients(10, 75), best: 1, share: 0.8},
		{name: "load 0.9", seconds: 60, up: processors(16), groups: clients(50, 360), best: 24, share: 0.96, polite: 0.95},
		{
			name: "4 answers/s", seconds: 240, up: func() *upstream { return &upstream{workers: 4, thrash: 0.05} },
			groups: []group{{name: "all", keys: 10, rate: constant(12), work: memoryless(1000 * ms), timeout: 10e9}}, best: 4, share: 0.85,
		},
		{
			name: "10 ms and 1 s", seconds: 90, up: func() *upstream { return &upstream{workers: 32, thrash: 0.05} },
			groups: []group{{name: "all", keys: 50, rate: constant(460), work: mixed(0.8, 10*ms, 1000*ms), timeout: 10e9}}, best: 32, share: 0.69,
		},
	}
}

// fleets are several gates in front of one upstream.
func fleets() []*scenario {
	step := func(i int, now int64) int64 { // at 30 s, the clock of the first gate is set by 300 ms
		if i == 0 && now < 30e9 {
			return 300 * ms
		}
		return 0
	}
	return []*scenario{
		{name: "2 gates", seconds: 60, up: processors(16), groups: clients(50, 1200), gates: 2, clock: apart(10 * ms), best: 24, share: 0.92},
		{name: "4 gates", seconds: 60, up: pool(48), groups: clients(50, 3000), gates: 4, clock: apart(10 * ms), best: 64, share: 0.92},
		{name: "8 gates, clocks 50 ms apart", seconds: 60, up: pool(48), groups: clients(50, 3000), gates: 8, clock: apart(7 * ms), best: 64, share: 0.92},
		{name: "4 gates, one has half", seconds: 60, up: pool(48), groups: clients(50, 3000), gates: 4, uneven: true, clock: apart(10 * ms), best: 64, share: 0.8},
		{name: "2 gates, a clock is set", seconds: 60, up: processors(16), groups: clients(50, 1200), gates: 2, clock: step, best: 24, share: 0.8},
	}
}

// changing are upstreams that change while they are overloaded.
func changing() []*scenario {
	impatient := clients(50, 2000)
	impatient[0].timeout = 2e9
	return []*scenario{
		{name: "capacity is never still", seconds: 90, up: pool(16), groups: clients(50, 1200), changes: unsteady(90), best: 24, share: 0.92},
		{name: "workers halve", seconds: 60, up: pool(48), groups: clients(50, 3000), changes: []change{{30, workers(24)}}, best: 64, share: 0.92},
		{name: "workers double", seconds: 60, up: pool(12), groups: clients(50, 1200), changes: []change{{30, workers(24)}}, best: 32, share: 0.92},
		{name: "workers 5x slower, 30 s", seconds: 90, up: pool(16), groups: clients(50, 1200), changes: []change{{30, slower(5)}, {60, slower(1)}}, best: 24, share: 0.92},
		{name: "delay 25x, 30 s", seconds: 90, up: pool(16), groups: clients(50, 1200), changes: []change{{30, delayed(250 * ms)}, {60, delayed(10 * ms)}}, best: 128, share: 0.85},
		{name: "10x slower, time-outs of 2 s", seconds: 80, up: pool(48), groups: impatient, changes: []change{{30, slower(10)}, {60, slower(1)}}, best: 64, share: 0.92},
		{
			name: "idle, burst, twice", seconds: 100, up: pool(16), groups: []group{{
				name: "all", keys: 50, work: memoryless(work), timeout: 10e9,
				rate: func(t float64) float64 { return max(between(40, 50, 1200, 5)(t), between(90, 100, 1200, 5)(t)) },
			}}, best: 24, share: 0.92,
		},
	}
}

// unsteady changes the speed every 0.2 to 3 s, to between 1 and 0.5.
func unsteady(seconds float64) (c []change) {
	r := rand.New(rand.NewSource(7))
	for t := 0.0; t < seconds; t += 0.2 + 2.8*r.Float64() {
		c = append(c, change{t, slower(1 / (0.5 + 0.5*r.Float64()))})
	}
	return c
}

// unfair are clients of which some ask for more than others.
func unfair() []*scenario {
	flash := func(class int) []group {
		known := crowd("known", 30, 300)
		known.from, known.to = 20, 40
		crowd := group{name: "new", rate: between(20, 40, 2000, 1), work: memoryless(work), timeout: 10e9, class: class}
		return []group{known, crowd}
	}
	hog := []group{crowd("polite", 20, 200), crowd("hog", 1, 1000)}
	return []*scenario{
		{name: "hog, 20 polite keys", seconds: 60, up: processors(16), groups: hog, best: 24, share: 0.92, polite: 0.98},
		{name: "crowd of new keys", seconds: 60, up: processors(16), groups: flash(0), best: 24, share: 0.92, polite: 0.99},
		{name: "crowd of new keys, priority", seconds: 60, up: processors(16), groups: flash(1), classes: 2, best: 24, share: 0.92, polite: 0.99},
	}
}

// odd are clients and upstreams that do not do what they should.
func odd() []*scenario {
	retry, leave := clients(200, 800), clients(50, 1200)
	retry[0].retries = 3
	leave[0].timeout = 2e9
	return []*scenario{
		{
			name: "64 connections, then errors", seconds: 60, groups: clients(50, 1200), best: 64, share: 0.87, up: func() *upstream {
				return &upstream{workers: 16, shared: true, delay: 100 * ms, thrash: 0.05, connections: 64, backlog: 64}
			},
		},
		{name: "clients retry", seconds: 60, up: processors(16), groups: retry, best: 24, share: 0.92},
		{name: "clients leave after 2 s", seconds: 60, up: processors(16), groups: leave, best: 24, share: 0.92},
		{
			name: "upstream that thrashes", seconds: 60, groups: leave, best: 20, share: 0.85,
			up: func() *upstream { return &upstream{workers: 16, shared: true, delay: 10 * ms, thrash: 1} },
		},
	}
}
