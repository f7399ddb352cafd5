package gate

import (
	"slices"
	"testing"
	"time"
)

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
