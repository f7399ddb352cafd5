package gate

import (
	"container/heap"
	"runtime"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestMillionKeys: clients that use a new key for each request take no memory, whether they stay until they are served,
// leave while they wait, or come back to wait when they are known.
func TestMillionKeys(t *testing.T) {
	deep.OneGoroutine(t)
	const keys = 1_000_000
	g := New(Options{Max: 4, MaxWait: time.Second})
	now := int64(1)
	var running, waiting []*Place
	enter := func(key int) {
		now += 10_000
		if p, ok := g.Enter(now, hashed(key), 0); ok {
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
			g.Abandon(now, waiting[0])
			waiting = waiting[1:]
			continue
		}
		g.Done(now, running[0], Useful)
		running = running[1:]
		kept := waiting[:0]
		for _, p := range waiting {
			if p.Waits() {
				kept = append(kept, p)
			} else if <-p.Ready() {
				running = append(running, p)
			} else {
				g.Refuse(now, p)
			}
		}
		waiting = kept
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if s := g.State(); s.Keys > 200 || s.Waiting > 60 {
		t.Errorf("%d keys have a state, and %d requests wait", s.Keys, s.Waiting)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more after a million keys", grown)
	}
	runtime.KeepAlive(g)
}

// departure is a request that ends at a time.
type departure struct {
	at     int64
	place  *Place
	answer Answer
}

type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].at < d[j].at }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) }

func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// TestOpenAndLeave: a client that opens requests and leaves at once, again and again, does not talk the limit down. The
// upstream is not full, and nobody else waits.
func TestOpenAndLeave(t *testing.T) {
	deep.OneGoroutine(t)
	g := New(Options{MaxWait: time.Second})
	play(g.limit, 1, 16, 60)
	learned := g.State().Limit
	now := int64(61e9)
	var ends departures
	enter := func(key uint64, took int64, a Answer) {
		p, ok := g.Enter(now, key, 0)
		if !ok {
			t.Fatalf("a request waits, although the limit was %d and is %d", learned, g.State().Limit)
		}
		heap.Push(&ends, departure{now + took, p, a})
	}
	for range 60_000 { // two minutes
		now += 2e6
		for len(ends) > 0 && ends[0].at <= now {
			d := heap.Pop(&ends).(departure)
			g.Done(d.at, d.place, d.answer)
		}
		if now%4e6 == 0 {
			enter(1, 20e6, Useful) // 5 run at a time
		}
		enter(2, 1e6, Left)
	}
	if s := g.State(); s.Limit < learned/2 {
		t.Errorf("the limit went from %d to %d", learned, s.Limit)
	}
}
