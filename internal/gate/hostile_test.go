package gate

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestNewKeys: clients that use a new key for each request take no memory, whether they stay until they are served,
// leave while they wait, or come back to wait when they are known.
func TestNewKeys(t *testing.T) {
	const keys = 200_000
	g := New(Options{Max: 4, MaxWait: time.Second})
	now := int64(1)
	var running, waiting []*Place
	enter := func(key int) {
		now += 10_000
		p := new(Place)
		if g.Enter(now, p, hashed(key), 0) {
			running = append(running, p)
		} else {
			waiting = append(waiting, p)
		}
	}
	for key := range 8 { // so that all lists have the room that they need
		enter(key)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for key := range keys {
		if enter(key); len(waiting) <= 50 {
			continue
		}
		if key%3 == 0 {
			g.Leave(now, waiting[0])
			g.Done(now, waiting[0], Left)
			waiting = waiting[1:]
			continue
		}
		g.Done(now, running[0], Useful)
		running = running[1:]
		kept := waiting[:0]
		for _, p := range waiting {
			if p.state == waits {
				kept = append(kept, p)
			} else if p.state == runs {
				running = append(running, p)
			} else {
				g.Refuse(now, p, 0)
			}
		}
		waiting = kept
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(g.keys) > 200 || g.waiting > 60 {
		t.Errorf("%d keys have a state, and %d requests wait", len(g.keys), g.waiting)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more after 200,000 keys", grown)
	}
	runtime.KeepAlive(g)
}

// TestSlowKey: a key whose requests never end leaves room for others: it has half of the slots at most, and what it has
// beyond the others does not count for them, even if the limit falls. A key that is alone has all slots.
func TestSlowKey(t *testing.T) {
	for _, c := range []struct {
		name                string
		limit, most, polite int
		alone               bool
		falls, slow, atOnce int
	}{
		{name: "alone", limit: 8, alone: true, falls: 8, slow: 8},
		{name: "next to others", limit: 8, polite: 8, falls: 8, slow: 4, atOnce: 7},
		{name: "the limit falls", limit: 8, polite: 8, falls: 3, slow: 4, atOnce: 2},
		{name: "one slot", limit: 1, polite: 2, falls: 1, slow: 1},
		{name: "a bound", limit: 8, most: 8, polite: 8, falls: 8, slow: 4, atOnce: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(c.limit, Options{MaxWait: math.MaxInt64, Max: c.most})
			for k := range c.polite {
				b.done(b.ask(k, 0, true), Useful)
			}
			for range 30 {
				b.ask(99, 0, true)
			}
			if n := len(b.running); n != c.slow {
				t.Fatalf("%d requests of the slow key run, want %d", n, c.slow)
			}
			b.fix(c.falls)
			for k := range c.polite {
				b.ask(k, 0, true)
			}
			if n := len(b.running) - c.slow; n != c.atOnce {
				t.Errorf("%d of %d polite keys are served at once, want %d", n, c.polite, c.atOnce)
			}
		})
	}
}

// TestAlternatingClasses: a key with long requests that alternates between classes has no more of the slots than it has in
// one class, even if it leaves the other class before its turn.
func TestAlternatingClasses(t *testing.T) {
	const keys = 4
	for _, alternates := range []bool{false, true} {
		b := newBench(1, Options{MaxWait: math.MaxInt64, Classes: 2})
		ask := func(key int) {
			if key == keys && alternates {
				r := b.ask(key, 1, true)
				b.waiting = drop(b.waiting, r)
				b.Leave(b.now, &r.Place)
			}
			b.ask(key, 0, true)
		}
		for k := range keys {
			for range 5 {
				ask(k)
			}
		}
		ask(keys)
		had := 0.0
		for b.now < 100e9 {
			r := b.running[0]
			took := int64(1e6)
			if r.key == keys {
				took = 50e6
				had += float64(took)
			}
			b.now += took
			ask(r.key)
			b.done(r, Useful)
		}
		if part := had / float64(b.now); part < 0.15 || part > 0.25 {
			t.Errorf("alternates: %v: the key had %.2f of the slots, want a fifth", alternates, part)
		}
	}
}

// TestOneLongRequest: after a request of 600 s, phases are at most 10 s long, and what is known of all others stays.
func TestOneLongRequest(t *testing.T) {
	for _, c := range []struct {
		name       string
		long, rest int
		most       float64 // seconds that a phase may last
	}{{"the first", 1, 0, 10}, {"among others", 1, 500, 2}, {"all", 500, 0, 10}} {
		l := limitOf(Options{})
		now := int64(1)
		done := func(took int64) {
			now += took
			l.step(now, 1, 0)
			l.done(now, took, Useful)
		}
		for range c.rest {
			done(50e6)
		}
		for range c.long {
			done(600e9)
		}
		l.step(now+20e9, 1, 0)
		if s := math.Exp2(float64(l.rhythm.shift)) / 1e9; s > c.most {
			t.Errorf("%s: phases last %.0f s", c.name, s)
		}
		if held := l.rhythm.counts - l.now; float64(held) > math.Exp2(float64(l.rhythm.shift))/2 {
			t.Errorf("%s: nothing is counted for %d s of a phase", c.name, held/1e9)
		}
	}
}

// TestHold: the slot of a client that leaves is held until it was taken for the mean time, and such a request says nothing of
// that time.
func TestHold(t *testing.T) {
	g := New(Options{Max: 1, MaxWait: time.Second})
	p := new(Place)
	g.Enter(1, p, hashed(1), 0)
	if hold := g.Hold(1, p); hold != 0 {
		t.Errorf("held for %v before anything is known", hold)
	}
	g.Done(1+100e6, p, Useful)
	g.Enter(1e9, p, hashed(2), 0)
	for _, c := range []struct{ after, want time.Duration }{
		{0, 100 * time.Millisecond}, {30 * time.Millisecond, 70 * time.Millisecond},
	} {
		if hold := g.Hold(1e9+int64(c.after), p); hold != c.want {
			t.Errorf("after %v held for %v more, want %v", c.after, hold, c.want)
		}
	}
	g.Done(1e9+30e6, p, Left)
	if s, _ := g.State(); s.Latency != 0.1 {
		t.Errorf("the mean is %v s", s.Latency)
	}
	g.Enter(2e9, p, hashed(3), 0)
	if hold := g.Hold(3e9, p); hold != 0 {
		t.Errorf("held for %v more after a second", hold)
	}
}

// departure is a request that ends at a time.
type departure struct {
	at     int64
	place  *Place
	answer Answer
}

// TestOpenAndLeave: a client that opens requests and leaves at once, again and again, does not talk the limit down. The
// upstream is not full, and nobody else waits.
func TestOpenAndLeave(t *testing.T) {
	g := New(Options{MaxWait: time.Second})
	play(g.limit, 1, 16, 60)
	learned := g.limit.n
	now := int64(61e9)
	var ends []departure // in order
	enter := func(key uint64, took int64, a Answer) {
		p := new(Place)
		if !g.Enter(now, p, key, 0) {
			t.Fatalf("a request waits, although the limit was %d and is %d", learned, g.limit.n)
		}
		d := departure{now + took, p, a}
		i, _ := slices.BinarySearchFunc(ends, d, func(e, d departure) int { return cmp.Compare(e.at, d.at) })
		ends = slices.Insert(ends, i, d)
	}
	for range 60_000 { // two minutes
		now += 2e6
		for len(ends) > 0 && ends[0].at <= now {
			g.Done(ends[0].at, ends[0].place, ends[0].answer)
			ends = ends[1:]
		}
		if now%4e6 == 0 {
			enter(1, 20e6, Useful) // 5 run at a time
		}
		enter(2, 1e6, Left)
	}
	if s, _ := g.State(); s.Limit < learned/2 {
		t.Errorf("the limit went from %d to %d", learned, s.Limit)
	}
}
