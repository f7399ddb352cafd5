package gate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// limitOf returns a limit with options.
func limitOf(o Options) *limit {
	l := newLimit()
	l.configure(o)
	return l
}

// play plays an upstream with so many workers, each of which answers every 20 ms, under a load that never ends.
// The wall clock is that of the events.
func play(l *limit, now int64, workers int, seconds float64) int64 {
	const work = 20e6
	var free []int64 // when each worker is free
	for range workers {
		free = append(free, now)
	}
	type job struct{ began, ends int64 }
	var running []job
	for end := now + int64(seconds*1e9); now < end; {
		for len(running) < l.n {
			i := 0
			for j := range free {
				if free[j] < free[i] {
					i = j
				}
			}
			free[i] = max(free[i], now) + work
			running = append(running, job{now, free[i]})
		}
		first := 0
		for i := range running {
			if running[i].ends < running[first].ends {
				first = i
			}
		}
		j := running[first]
		running = append(running[:first], running[first+1:]...)
		now = max(now, j.ends)
		l.step(now, len(running)+1, 10)
		l.done(now, now-j.began, Useful)
		l.step(now, len(running), 10)
	}
	return now
}

// TestLimitFinds: the limit finds how many workers there are, and finds it again when they change. It may let in
// some more, because a worker that is never idle needs a request that waits.
func TestLimitFinds(t *testing.T) {
	l := limitOf(Options{})
	now := int64(1)
	for _, workers := range []int{16, 64, 100, 30} {
		now = play(l, now, workers, 60)
		if n := math.Exp(l.center); n < 0.8*float64(workers) || n > 2.5*float64(workers) {
			t.Errorf("the limit is about %.0f for %d workers", n, workers)
		}
	}
}

// TestLimitLearnsOnlyUnderLoad: while nothing waits, the limit stays.
func TestLimitLearnsOnlyUnderLoad(t *testing.T) {
	l := limitOf(Options{})
	now := play(l, 1, 32, 60)
	center := l.center
	for range 10000 {
		now += 10e6
		l.step(now, 1, 0)
		l.done(now, 5e6, Useful)
		l.step(now, 0, 0)
	}
	if l.center != center {
		t.Errorf("the limit went from %.0f to %.0f while nothing waited", math.Exp(center), math.Exp(l.center))
	}
}

// TestLimitOfAnUpstreamThatFails: an upstream that refuses by itself leaves nothing to wait here, and yet
// the limit falls, because failures are no useful answers.
func TestLimitOfAnUpstreamThatFails(t *testing.T) {
	l := limitOf(Options{})
	now := play(l, 1, 64, 60)
	high := l.center
	for range 100000 {
		now += 1e6
		l.step(now, l.n-1, 0)
		l.done(now, 5e6, Failed)
	}
	if l.center > high-1 {
		t.Errorf("the limit went from %.0f to %.0f while all requests failed", math.Exp(high), math.Exp(l.center))
	}
}

// TestLimitBounds: whatever is counted, the limit is within its bounds, and at least 1.
func TestLimitBounds(t *testing.T) {
	deep.Property(t, func(t *rapid.T) {
		o := Options{Min: rapid.IntRange(0, 50).Draw(t, "min"), Max: rapid.IntRange(0, 100).Draw(t, "max")}
		if o.Max > 0 {
			o.Max = max(o.Max, o.Min)
		}
		l := limitOf(o)
		now := int64(0)
		for range rapid.IntRange(1, 400).Draw(t, "answers") {
			took := rapid.Int64Range(0, 3e9).Draw(t, "took")
			now += rapid.Int64Range(0, 1e9).Draw(t, "ns")
			l.step(now, l.n, rapid.IntRange(0, 1).Draw(t, "waiting"))
			l.done(now, took, Answer(rapid.IntRange(0, 2).Draw(t, "answer")))
			if n := l.n; n < max(o.Min, 1) || o.Max > 0 && n > o.Max || math.IsNaN(l.center) {
				t.Fatalf("the limit is %d, want %d to %d", n, max(o.Min, 1), o.Max)
			}
		}
	})
}

// TestRhythm: gates with different clocks of their own are in the same phase, and follow a wall clock that is set.
func TestRhythm(t *testing.T) {
	wall := int64(1_700_000_000e9)
	a, b := limitOf(Options{Wall: func() int64 { return wall }}), limitOf(Options{Wall: func() int64 { return wall }})
	for i := range int64(200) {
		if wall += 50e6; i == 100 {
			wall -= 3600e9
		}
		a.step(i*50e6, 8, 5)
		b.step(i*50e6+77e6, 8, 5)
		// A gate that has not seen that the clock was set does so in the next phase.
		if i != 0 && (i < 100 || i > 103) && a.rhythm.phase != b.rhythm.phase {
			t.Fatalf("after %d ms: phases %d and %d", i*50, a.rhythm.phase, b.rhythm.phase)
		}
	}
}
