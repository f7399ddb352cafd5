package turns

import (
	"slices"
	"sort"
	"time"
)

// line has the turns and the requests of one cost. There are as many turns as requests, or
// more: those behind the first ones are spare.
type line struct {
	queues   *Queues
	queue    *queue
	cost     int64
	giveBack func(at int64, told func(taken bool))

	turns      []lineTurn // in order
	first, end *Waiter
	waiting    int
	counted    int // of the spare turns, in all
	timer      *time.Timer
	timerAt    time.Time // when the alarm goes off
}

// lineTurn is a turn in a line.
type lineTurn struct {
	at      int64     // on the queue's clock
	due     time.Time // on ours
	refused bool      // the queue did not take it back
}

// Waiter is a request in a line.
type Waiter struct {
	line           *line
	at             int64 // its turn, once that has come
	ready          chan struct{}
	over           bool // it has its turn, or has left
	before, behind *Waiter
}

// Ready is closed when the request's turn has come.
func (w *Waiter) Ready() <-chan struct{} { return w.ready }

// At is the turn that has come.
func (w *Waiter) At() int64 { return w.at }

// spare is how many turns nobody waits for.
func (l *line) spare() int { return len(l.turns) - l.waiting }

func (l *line) last() *lineTurn { return &l.turns[len(l.turns)-1] }

// removeLast takes the last turn off.
func (l *line) removeLast() lineTurn {
	last := *l.last()
	l.turns = l.turns[:len(l.turns)-1]
	return last
}

// add puts a turn where it belongs, which most often is at the end, and returns where.
func (l *line) add(t lineTurn) (place int) {
	place = len(l.turns)
	if place > 0 && l.turns[place-1].at > t.at {
		place = sort.Search(place, func(i int) bool { return l.turns[i].at > t.at })
	}
	l.turns = slices.Insert(l.turns, place, t)
	return place
}

// join adds a request and its turn. The request stands behind those whose turns are earlier
// now. Most often these are all.
func (l *line) join(w *Waiter, t lineTurn) {
	before := l.end
	for n := l.waiting - l.add(t); n > 0; n-- {
		before = before.before
	}
	w.before = before
	if before == nil {
		w.behind, l.first = l.first, w
	} else {
		w.behind, before.behind = before.behind, w
	}
	if w.behind == nil {
		l.end = w
	} else {
		w.behind.before = w
	}
	l.waiting++
}

// leave takes a request off the line.
func (l *line) leave(w *Waiter) {
	if w.before == nil {
		l.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		l.end = w.before
	} else {
		w.behind.before = w.before
	}
	w.before, w.behind, w.over = nil, nil, true
	l.waiting--
}

// release lets those go whose turn has come, and forgets spare turns that are over.
func (l *line) release(now time.Time) {
	n := 0
	for ; n < len(l.turns) && !l.turns[n].due.After(now); n++ {
		if w := l.first; w != nil {
			l.leave(w)
			w.at = l.turns[n].at
			close(w.ready)
		}
	}
	l.turns = l.turns[n:]
}

// setTimer sets the alarm for the first turn.
func (l *line) setTimer() {
	switch {
	case len(l.turns) == 0:
		if l.timer != nil {
			l.timer.Stop()
		}
		l.turns, l.timerAt = nil, time.Time{}
	case l.turns[0].due.Equal(l.timerAt):
	case l.timer == nil:
		l.timerAt = l.turns[0].due
		l.timer = time.AfterFunc(time.Until(l.timerAt), l.onTimer)
	default:
		l.timerAt = l.turns[0].due
		l.timer.Reset(time.Until(l.timerAt))
	}
}

// onTimer is what the alarm does.
func (l *line) onTimer() {
	l.queues.mu.Lock()
	defer l.queues.mu.Unlock()
	if len(l.turns) == 0 { // the line is gone
		return
	}
	l.release(time.Now())
	l.timerAt = time.Time{} // also if it went off early
	l.queues.balance(l)
}
