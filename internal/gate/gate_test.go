package gate

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"
)

// TestConfigure: what a gate has learned stays when its options change, and waiting requests keep their places.
func TestConfigure(t *testing.T) {
	g := New(Options{MaxWait: time.Second, Classes: 2})
	play(g.limit, 1, 64, 30)
	learned := g.limit.n
	now := int64(40e9)
	var all []*Place
	for i := range 2 * learned {
		p := new(Place)
		g.Enter(now, p, hashed(i), i%2)
		all = append(all, p)
	}
	g.Configure(Options{MaxWait: time.Second})
	s, classes := g.State()
	if len(classes) != 1 || s.Running+s.Waiting != len(all) || s.Limit < learned/2 {
		t.Fatalf("%+v, was %d", s, learned)
	}
	g.Configure(Options{MaxWait: time.Second, Max: 3})
	if s, _ := g.State(); s.Limit > 3 {
		t.Errorf("the limit is %d, above its new bound", s.Limit)
	}
	for _, p := range all {
		g.Leave(now, p)
		g.Done(now, p, Useful)
	}
	if s, _ := g.State(); s.Running != 0 || s.Waiting != 0 {
		t.Errorf("%+v in the end", s)
	}
}

// TestRetryAfter: clients learn to come back at the pace of the upstream.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		refusals, random float64
		want             int64
	}{{0, 0.9, 1}, {1, 0.6, 2}, {9, 0.5, 6}, {1000, 0.9, 30}} {
		g := New(Options{})
		g.refusals = c.refusals
		if _, got := g.Refuse(0, new(Place), c.random); got != c.want {
			t.Errorf("%v refusals, random %v: %d s, want %d", c.refusals, c.random, got, c.want)
		}
	}
	g, now := New(Options{Max: 1}), int64(0)
	ratio := func(answers int, refused bool) float64 {
		for range answers {
			var runs, waits Place
			now += 1e6
			g.Enter(now, &runs, 1, 0)
			g.Enter(now, &waits, 2, 0)
			for i := 0; refused && i < 2; i++ {
				g.Leave(now, &waits)
				g.Refuse(now, &waits, 0)
			}
			g.Leave(now, &waits)
			g.Done(now, &runs, Useful)
		}
		return g.refusals
	}
	if r := ratio(500, true); r < 1.9 || r > 2.1 {
		t.Errorf("the ratio is %v, want 2", r)
	}
	if r := ratio(500, false); r > 0.1 {
		t.Errorf("the ratio is %v after many answers, want none", r)
	}
}

// TestNoAllocations: while nothing waits, a request allocates nothing.
func TestNoAllocations(t *testing.T) {
	g := New(Options{MaxWait: time.Second})
	now, p := int64(0), Place{}
	if n := testing.AllocsPerRun(1000, func() {
		now += 1e6
		g.Enter(now, &p, 1, 0)
		g.Done(now, &p, Useful)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSince: a shortage begins with the first request that has to wait, goes on after short pauses, and is dated by the wall
// clock.
func TestSince(t *testing.T) {
	const hour = 3600e9
	now := int64(time.Second)
	g := New(Options{Max: 1, MaxWait: time.Second, Wall: func() int64 { return now + hour }})
	wait := func(after time.Duration) time.Duration {
		t.Helper()
		now += int64(after)
		var runs, waits Place
		g.Enter(now, &runs, hashed(1), 0)
		if s, _ := g.State(); s.Since != nil {
			t.Errorf("%+v although nothing waits", s)
		}
		g.Enter(now, &waits, hashed(2), 0)
		s, _ := g.State()
		g.Leave(now, &waits)
		g.Done(now, &runs, Useful)
		return s.Since.Sub(time.Unix(0, hour).Add(time.Second))
	}
	for _, c := range []struct{ after, want time.Duration }{{0, 0}, {30 * time.Second, 0}, {59 * time.Second, 0}, {61 * time.Second, 150 * time.Second}} {
		if got := wait(c.after); got != c.want {
			t.Errorf("%v later the shortage began after %v, want %v", c.after, got, c.want)
		}
	}
}

// TestEnds: requests are counted by class and by how they ended, with the time of their slots.
func TestEnds(t *testing.T) {
	g := New(Options{Max: 9, MaxWait: time.Second, Classes: 2})
	for i, c := range []struct {
		class int
		end   Answer
		took  time.Duration
	}{{0, Useful, 5}, {0, Useful, 7}, {1, Failed, 11}, {1, Left, 13}} {
		start := int64(1000 * (i + 1))
		var p Place
		g.Enter(start, &p, 1, c.class)
		g.Done(start+int64(c.took), &p, c.end)
	}
	want := []Class{{Ends: [3]uint64{2}, Slots: [3]time.Duration{12}}, {Ends: [3]uint64{0, 1, 1}, Slots: [3]time.Duration{0, 11, 13}}}
	s, classes := g.State()
	if !slices.Equal(classes, want) || s.Useful != 2 || s.Failed != 1 || s.Left != 1 {
		t.Errorf("%+v of %+v", classes, s)
	}
	if s.Spread < 1 || s.Spread > 2 {
		t.Errorf("times of 5 to 13 ns have a spread of %v", s.Spread)
	}
	g.Configure(Options{Max: 9, MaxWait: time.Second})
	if after, classes := g.State(); len(classes) != 1 || after.Left != 1 {
		t.Errorf("without a class %+v of %+v", classes, after)
	}
}

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
	free := slices.Repeat([]int64{now}, workers) // when each worker is free
	type job struct{ began, ends int64 }
	var running []job
	for end := now + int64(seconds*1e9); now < end; {
		for len(running) < l.n {
			i := slices.Index(free, slices.Min(free))
			free[i] = max(free[i], now) + work
			running = append(running, job{now, free[i]})
		}
		j := slices.MinFunc(running, func(a, b job) int { return cmp.Compare(a.ends, b.ends) })
		running = slices.Delete(running, slices.Index(running, j), slices.Index(running, j)+1)
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
