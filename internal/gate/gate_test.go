package gate

import (
	"testing"
	"time"
)

// TestLeave: a client that leaves frees its place, and its slot if it has got one in that moment.
func TestLeave(t *testing.T) {
	g := New(Options{Max: 1, MaxWait: time.Second})
	var first, second, third Place
	for i, p := range []*Place{&first, &second, &third} {
		g.Enter(int64(i+1), p, hashed(i), 0)
	}
	if g.Leave(4, &second) {
		t.Error("the second has a slot")
	}
	if s, _ := g.State(); s.Waiting != 1 || s.Running != 1 {
		t.Fatalf("%+v after the second has left", s)
	}
	g.Done(5, &first, Useful)
	if !g.Leave(6, &third) {
		t.Error("the third has no slot")
	}
	g.Done(6, &third, Left)
	if s, _ := g.State(); s.Waiting != 0 || s.Running != 0 {
		t.Errorf("%+v after all have left", s)
	}
}

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
