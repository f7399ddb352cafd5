package engine

import (
	"container/heap"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
)

// timeline is the time of the logs, in microseconds since 1970, and what is to happen later. It does
// not go back. It implements [clock.Sleeper] and is for one goroutine at a time.
type timeline struct {
	now     int64
	events  events
	count   uint64
	running *waiter // the walk that runs in a coroutine; nil if none does
}

// event is what happens at a time. Those of the same time happen in the order in which they were
// planned.
type event struct {
	at   int64
	nth  uint64
	call func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].nth < e[j].nth
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	all := *e
	last := all[len(all)-1]
	all[len(all)-1] = event{}
	*e = all[:len(all)-1]
	return last
}

// plan makes something happen at a time, or now if that is over.
func (t *timeline) plan(at int64, call func()) {
	t.count++
	heap.Push(&t.events, event{max(at, t.now), t.count, call})
}

// moveTo lets everything happen that is planned up to a time, and goes there.
func (t *timeline) moveTo(at int64) {
	for len(t.events) > 0 && t.events[0].at <= at {
		next := heap.Pop(&t.events).(event)
		t.now = max(t.now, next.at)
		next.call()
	}
	t.now = max(t.now, at)
}

// finish lets everything happen that is planned.
func (t *timeline) finish() {
	for len(t.events) > 0 {
		t.moveTo(t.events[0].at)
	}
}

func (t *timeline) micros() int64 { return t.now }

// Now implements [clock.Clock].
func (t *timeline) Now() time.Duration { return time.Duration(t.now) * time.Microsecond }

// Sleep implements [clock.Sleeper]. Other requests are decided meanwhile.
func (t *timeline) Sleep(d time.Duration) {
	t.running.yield(t.now + (d + time.Microsecond - 1).Microseconds())
}

// AfterFunc implements [clock.Clock]. Nothing but a queue whose clients leave would call it, and nobody
// leaves a replay.
func (t *timeline) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := &timer{timeline: t, call: f}
	timer.Reset(d)
	return timer
}

type timer struct {
	timeline *timeline
	call     func()
	set      uint64 // how often it was set or stopped
}

// Stop implements [clock.Timer].
func (t *timer) Stop() bool {
	t.set++
	return false
}

// Reset implements [clock.Timer].
func (t *timer) Reset(d time.Duration) bool {
	t.set++
	set := t.set
	t.timeline.plan(t.timeline.now+d.Microseconds(), func() {
		if set == t.set {
			t.call()
		}
	})
	return false
}
