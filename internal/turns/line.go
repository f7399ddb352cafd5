package turns

import (
	"container/list"
	"slices"
	"sort"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// line has the turns and the requests of one cost. There are at least as many turns as requests,
// and those after the last request are spare.
type line struct {
	queues *Queues
	back   store.Adjustment // gives back the turn that came last

	turns   []lineTurn // in order
	waiters list.List  // the requests, in order
	counted int        // the number of spare turns that are part of Queues.spare
	timer   *time.Timer
	timerAt time.Duration // when the timer goes off
}

// lineTurn is a turn in a line.
type lineTurn struct {
	at      int64         // on the clock of the store
	due     time.Duration // on the clock of the queues
	refused bool          // the queue did not take it back
}

// Waiter is a request in a line.
type Waiter struct {
	line  *line
	at    int64 // its turn, when that has come
	ready chan struct{}
	place *list.Element // in the line; nil if it has its turn, or has left
}

// Ready returns a channel that is closed when the request's turn has come.
func (w *Waiter) Ready() <-chan struct{} { return w.ready }

// At returns the request's turn. It is valid when the turn has come.
func (w *Waiter) At() int64 { return w.at }

// spare returns the number of turns that no request waits for.
func (l *line) spare() int { return len(l.turns) - l.waiters.Len() }

func (l *line) last() *lineTurn { return &l.turns[len(l.turns)-1] }

// removeLast takes the last turn off.
func (l *line) removeLast() lineTurn {
	last := *l.last()
	l.turns = l.turns[:len(l.turns)-1]
	return last
}

// add inserts a turn in order, and returns its index.
func (l *line) add(t lineTurn) (place int) {
	place = sort.Search(len(l.turns), func(i int) bool { return l.turns[i].at > t.at })
	l.turns = slices.Insert(l.turns, place, t)
	return place
}

// join adds a request and its turn. The request comes after all requests whose turns are now
// earlier, which most often are all.
func (l *line) join(w *Waiter, t lineTurn) {
	before := l.waiters.Back()
	for n := l.waiters.Len() - l.add(t); n > 0; n-- {
		before = before.Prev()
	}
	if before == nil {
		w.place = l.waiters.PushFront(w)
	} else {
		w.place = l.waiters.InsertAfter(w, before)
	}
}

// leave removes a request from the line.
func (l *line) leave(w *Waiter) {
	l.waiters.Remove(w.place)
	w.place = nil
}

// release lets the requests go on whose turns have come, and drops spare turns that are over.
func (l *line) release(now time.Duration) {
	n := 0
	for ; n < len(l.turns) && l.turns[n].due <= now; n++ {
		if first := l.waiters.Front(); first != nil {
			w := first.Value.(*Waiter)
			l.leave(w)
			w.at = l.turns[n].at
			close(w.ready)
		}
	}
	l.turns = l.turns[n:]
}

// setTimer sets the timer for the first turn, or stops it if there is none.
func (l *line) setTimer() {
	if l.timer != nil {
		if len(l.turns) > 0 && l.turns[0].due == l.timerAt {
			return
		}
		l.timer.Stop()
		l.timer = nil
	}
	if len(l.turns) > 0 {
		l.timerAt = l.turns[0].due
		l.timer = l.queues.clock.AfterFunc(l.timerAt-l.queues.clock.Now(), l.onTimer)
	}
}

// onTimer is called by the timer, which may be one that has just been stopped.
func (l *line) onTimer() {
	l.queues.mu.Lock()
	defer l.queues.mu.Unlock()
	if len(l.turns) == 0 { // the line is gone
		return
	}
	l.release(l.queues.clock.Now())
	l.timerAt = 0 // so that the timer is set again, also if it went off early
	l.queues.balance(l)
}
