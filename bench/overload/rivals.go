package main

import (
	"math"
	"math/rand"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// rivals are the limits of the table, with their published defaults and windows of a second. All but the
// queue of the last static limit have our queue, which they do not have elsewhere.
func rivals() []rival {
	return []rival{
		adaptive(),
		{name: "AIMD", limit: func(int) limiter { return &aimd{base: base{20}} }},
		{name: "Vegas", limit: func(int) limiter {
			return &vegas{base: base{20}, rnd: rand.New(rand.NewSource(1)), jitter: 0.75}
		}},
		{name: "Gradient2", limit: func(int) limiter { return &gradient2{base: base{20}} }},
		{name: "no limit", limit: func(int) limiter { return static(1 << 30) }},
	}
}

// adaptive is package gate as it is.
func adaptive() rival { return rival{name: "adaptive"} }

// fixed is a limit that never changes, of all gates together.
func fixed(n int, fifo bool) rival {
	return rival{name: "static", fifo: fifo, limit: func(gates int) limiter { return static(max(1, n/gates)) }}
}

// static is a limit that never changes.
type static int

func (s static) N() int                              { return int(s) }
func (s static) Done(int64, int64, int, gate.Answer) {}

// base is what the rivals share.
type base struct{ limit float64 }

func (b *base) N() int { return max(int(b.limit), 1) }

// aimd is additive increase, multiplicative decrease: one more for each answer in time, a tenth less for
// each failure or answer above 5 s. Defaults of Netflix' AIMDLimit: 20 at first, 20 to 200.
type aimd struct{ base }

func (a *aimd) Done(_, took int64, running int, answer gate.Answer) {
	if answer != gate.Useful || took > 5e9 {
		a.limit = math.Min(a.limit-1, math.Floor(a.limit*0.9))
	} else if float64(running)*2 >= a.limit {
		a.limit++
	}
	a.limit = min(max(a.limit, 20), 200)
}

// window gathers answers for a second, at least ten, as Netflix' WindowedLimit does.
type window struct {
	from    int64
	sum     float64
	n       int
	running int
	drop    bool
}

// add adds an answer. If the window is over, it returns the mean time, the most that ran, and whether
// a request failed.
func (w *window) add(now, took int64, running int, a gate.Answer) (mean float64, most int, drop, over bool) {
	w.sum += float64(took)
	w.n++
	w.running = max(w.running, running)
	w.drop = w.drop || a != gate.Useful
	if now-w.from < 1e9 || w.n < 10 {
		return 0, 0, false, false
	}
	mean, most, drop = w.sum/float64(w.n), w.running, w.drop
	*w = window{from: now}
	return mean, most, drop, true
}

// vegas compares each latency with the least: limit x (1 - least/now) is the queue, and should be between
// 3 log10 and 6 log10 of the limit. The least is measured again now and then. Defaults of Netflix'
// VegasLimit.
type vegas struct {
	base
	window window
	least  float64
	probes float64
	jitter float64
	rnd    *rand.Rand
}

func (v *vegas) Done(now, took int64, running int, a gate.Answer) {
	mean, most, drop, over := v.window.add(now, took, running, a)
	if !over {
		return
	}
	v.probes++
	if v.probes >= v.jitter*30*v.limit {
		v.jitter, v.probes, v.least = 0.5+v.rnd.Float64()/2, 0, mean
		return
	}
	if v.least == 0 || mean < v.least {
		v.least = mean
		return
	}
	log := math.Max(1, math.Floor(math.Log10(math.Floor(v.limit))))
	queue := math.Ceil(v.limit * (1 - v.least/mean))
	switch {
	case drop:
		v.limit -= log
	case float64(most)*2 < v.limit:
	case queue <= log:
		v.limit += 6 * log
	case queue < 3*log:
		v.limit += log
	case queue > 6*log:
		v.limit -= log
	}
	v.limit = min(max(v.limit, 1), 1000)
}

// gradient2 compares the latency of a second with the mean of 600 such: the limit becomes 0.8 limit + 0.2 (limit x
// gradient + 4), where the gradient is 1.5 long/now, between a half and one. Defaults of Netflix' Gradient2Limit: 20
// at first, 20 to 200.
type gradient2 struct {
	base
	window window
	long   float64
	n      float64
}

func (g *gradient2) Done(now, took int64, running int, a gate.Answer) {
	mean, most, _, over := g.window.add(now, took, running, a)
	if !over {
		return
	}
	if g.n < 10 {
		g.n++
		g.long += (mean - g.long) / g.n
	} else {
		g.long += (mean - g.long) * 2 / 601
	}
	if g.long/mean > 2 {
		g.long *= 0.95
	}
	if float64(most) < g.limit/2 {
		return
	}
	gradient := math.Max(0.5, math.Min(1, 1.5*g.long/mean))
	g.limit = min(max(0.8*g.limit+0.2*(g.limit*gradient+4), 20), 200)
}
