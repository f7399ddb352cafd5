package turns

import (
	"slices"
	"sort"
	"time"
)

// line has the turns and the requests of one cost. There are as many turns as requests, or
// more: those behind the first ones are spare.
type line struct {
	all   *Queues
	queue *queue
	cost  int64
	back  func(at int64, told func(taken bool))

	turns      []slot // in order
	first, end *Waiter
	waiting    int
	counted    int // of the spare turns, in all
	alarm      *time.Timer
	alarmed    time.Time // when the alarm goes off
}

// slot is a turn in a line.
type slot struct {
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

func (l *line) last() *slot { return &l.turns[len(l.turns)-1] }

// cut takes the last turn off.
func (l *line) cut() slot {
	last := *l.last()
	l.turns = l.turns[:len(l.turns)-1]
	return last
}

// add puts a turn where it belongs, which most often is at the end, and returns where.
func (l *line) add(t slot) (place int) {
	place = len(l.turns)
	if place > 0 && l.turns[place-1].at > t.at {
		place = sort.Search(place, func(i int) bool { return l.turns[i].at > t.at })
	}
	l.turns = slices.Insert(l.turns, place, t)
	return place
}

// join adds a request and its turn. The request stands behind those whose turns are earlier
// now. Most often these are all.
func (l *line) join(w *Waiter, t slot) {
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

// ring lets those go whose turn has come, and forgets spare turns that are over.
func (l *line) ring(now time.Time) {
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

// setAlarm sets the alarm for the first turn.
func (l *line) setAlarm() {
	switch {
	case len(l.turns) == 0:
		if l.alarm != nil {
			l.alarm.Stop()
		}
		l.turns, l.alarmed = nil, time.Time{}
	case l.turns[0].due.Equal(l.alarmed):
	case l.alarm == nil:
		l.alarmed = l.turns[0].due
		l.alarm = time.AfterFunc(time.Until(l.alarmed), l.wake)
	default:
		l.alarmed = l.turns[0].due
		l.alarm.Reset(time.Until(l.alarmed))
	}
}

// wake is what the alarm does.
func (l *line) wake() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if len(l.turns) == 0 { // the line is gone
		return
	}
	l.ring(time.Now())
	l.alarmed = time.Time{} // also if it went off early
	l.all.settle(l)
}
