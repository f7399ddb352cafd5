package clock

import (
	"iter"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/heap"
)

// Timeline is the time of a log or of a test, and what is to happen later. It does not go back. It implements
// [Clock] and is for one goroutine at a time. The zero value begins in 1970.
type Timeline struct {
	now     int64 // in microseconds since 1970
	events  heap.Heap[event]
	count   uint64
	running *coroutine // nil if none runs
}

// coroutine is what [Timeline.Go] runs.
type coroutine struct{ yield func(until int64) bool }

// event is what happens at a time. Those of the same time happen in the order in which they were
// planned.
type event struct {
	at   int64
	nth  uint64
	call func()
}

// Before implements [heap.Heap].
func (e event) Before(other event) bool {
	return e.at < other.at || e.at == other.at && e.nth < other.nth
}

// Plan makes something happen at a time, in microseconds since 1970, or now if that is over.
func (t *Timeline) Plan(at int64, call func()) {
	t.count++
	t.events.Push(event{max(at, t.now), t.count, call})
}

// MoveTo lets everything happen that is planned up to a time, in microseconds since 1970, and goes there.
func (t *Timeline) MoveTo(at int64) {
	for len(t.events) > 0 && t.events[0].at <= at {
		next := t.events.Pop()
		t.now = max(t.now, next.at)
		next.call()
	}
	t.now = max(t.now, at)
}

// Step lets happen what is planned for the earliest time. It reports whether there was anything.
func (t *Timeline) Step() bool {
	if len(t.events) == 0 {
		return false
	}
	t.MoveTo(t.events[0].at)
	return true
}

// Finish lets everything happen that is planned.
func (t *Timeline) Finish() {
	for t.Step() {
	}
}

// Micros returns the time in microseconds since 1970.
func (t *Timeline) Micros() int64 { return t.now }

// Now implements [Clock].
func (t *Timeline) Now() time.Duration { return time.Duration(t.now) * time.Microsecond }

// Go calls f, and over once f has returned. f may sleep; then Go returns, and f goes on when its time has come.
func (t *Timeline) Go(f, over func()) {
	c := new(coroutine)
	next, stop := iter.Pull(func(yield func(int64) bool) {
		c.yield = yield
		f()
	})
	var resume func()
	resume = func() {
		before := t.running
		t.running = c
		until, sleeps := next()
		t.running = before
		if sleeps {
			t.Plan(until, resume)
			return
		}
		stop()
		over()
	}
	resume()
}

// Sleep returns once d has passed. Nobody leaves meanwhile, and others go on. What [Timeline.Go] has not called goes on at
// once, at the later time.
func (t *Timeline) Sleep(d time.Duration) {
	until := t.now + (d + time.Microsecond - 1).Microseconds()
	if t.running == nil {
		t.MoveTo(until)
		return
	}
	t.running.yield(until)
}
