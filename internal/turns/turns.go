// Package turns hands on the turns of requests whose clients leave a queue.
//
// A queue is a state in a store: it gives each request a turn, which is the time at which the
// request may go on, and it takes back only its last turn. So when a client leaves, each request
// behind it gets the turn of the one before it, and the last turn is given back. The turns stay
// where they are, so the rate of the queue does not change.
//
// The requests of this process that wait for the same key are sorted into lines, one for each
// cost, so that all turns in a line are equally long. A line is a list of turns and a list of
// requests, both in order. The first request gets the first turn. A request that leaves is removed
// from its list, and then the last turn is one too many. This takes the same time however many
// requests wait.
//
// The queue does not take a turn back while a later one is in use elsewhere: in another process,
// or in a line of another cost. Such a turn is spare. The next request that joins the line gets
// it, and the later turn of that request is given back instead. A spare turn is also offered to
// the queue again when a later one of this process has been taken back. One that nobody takes is lost when it is over.
package turns

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxSpare bounds the spare turns of all queues together. No bound is needed for lines: each has a turn or a request that waits.
const maxSpare = 100_000

// Store is where the queues are.
type Store interface {
	// Adjust gives turns back, as in [store.Store].
	Adjust(adjustments ...store.Adjustment)

	// Acquire keeps the store open until Release is called. It reports whether the store was still open.
	Acquire() bool
	Release() error
}

// queue identifies a queue in a store.
type queue struct {
	state    string // of the rule, for all keys
	salt     uint64
	override string // the override of the key, if it has one
	key      string
}

// Queues has the queues of a store in which requests of this process wait.
type Queues struct {
	mu      sync.Mutex
	lines   map[queue][]*line  // in which requests wait, or which have spare turns
	spare   int                // turns of all queues
	returns []store.Adjustment // turns that are being given back, and are in no line meanwhile
	busy    bool               // a goroutine sends them
	store   Store
	clock   clock.Timers
}

// New makes the queues of a store.
func New(c clock.Timers, of Store) *Queues {
	return &Queues{lines: make(map[queue][]*line), store: of, clock: c}
}

// Join adds a request to the line of its turn, which comes after a wait, and which back gives back. With another Turn, that gives
// back any turn of the same cost.
func (q *Queues) Join(back store.Adjustment, wait time.Duration) *Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(back)
	w := &Waiter{line: l, ready: make(chan struct{})}
	now := q.clock.Now()
	l.release(now) // so that no spare turn is used that is over
	l.join(w, lineTurn{at: back.Turn, due: now + wait})
	q.balance(l)
	return w
}

// Leave removes a request from its line. It reports whether the turn had already come: then the
// request has that turn, w.At, and it was not handed on.
func (q *Queues) Leave(w *Waiter) (came bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place == nil {
		return true
	}
	l := w.line
	l.leave(w)
	l.last().refused = false // the queue may take it now
	q.balance(l)
	return false
}

func queueOf(back *store.Adjustment) queue {
	return queue{back.Rule.ID(), back.Rule.Salt(), back.Override, back.Key}
}

// line returns the line of a turn, and makes it if there is none. The caller must hold the lock.
func (q *Queues) line(back store.Adjustment) *line {
	name := queueOf(&back)
	for _, l := range q.lines[name] {
		if l.back.Cost == back.Cost {
			l.back = back
			return l
		}
	}
	l := &line{queues: q, back: back}
	q.lines[name] = append(q.lines[name], l)
	return l
}

// balance gives the spare turns of a line back, but for those that the queue has refused. It
// removes the line if it is empty. The caller must hold the lock.
func (q *Queues) balance(l *line) {
	for l.spare() > 0 && !l.last().refused {
		q.enqueueReturn(l, l.removeLast())
	}
	q.spare += l.spare() - l.counted
	for l.counted = l.spare(); q.spare > maxSpare && l.counted > 0; l.counted-- {
		l.removeLast()
		q.spare--
	}
	l.setTimer()
	if len(l.turns) > 0 {
		return
	}
	name := queueOf(&l.back)
	rest := slices.DeleteFunc(q.lines[name], func(other *line) bool { return other == l })
	if q.lines[name] = rest; len(rest) == 0 {
		delete(q.lines, name)
	}
}

// enqueueReturn gives a turn back to the queue. A goroutine does this, because a store may call
// Done at once, and in order, because the queue takes only its last turn. The caller must hold the
// lock.
func (q *Queues) enqueueReturn(l *line, t lineTurn) {
	back := l.back
	back.Turn = t.at
	back.Done = func(taken bool) { q.returned(back, t.due, taken) }
	q.returns = append(q.returns, back)
	if q.busy {
		return
	}
	if !q.store.Acquire() { // the store is closed
		q.returns = nil
		return
	}
	q.busy = true
	go q.sendReturns()
}

// sendReturns gives turns back until there are no more.
func (q *Queues) sendReturns() {
	defer func() { _ = q.store.Release() }()
	for {
		q.mu.Lock()
		all := q.returns
		q.returns, q.busy = nil, len(all) > 0
		q.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, back := range all {
			q.store.Adjust(back)
		}
	}
}

// returned is called when it is known whether the queue has taken a turn back. A turn that was
// refused becomes spare again until it is due. After one that was taken, the queue may take the last spare one.
func (q *Queues) returned(back store.Adjustment, due time.Duration, taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var last *line
	switch {
	case taken:
		for _, l := range q.lines[queueOf(&back)] {
			if l.spare() > 0 && (last == nil || l.last().at > last.last().at) {
				last = l
			}
		}
		if last != nil {
			last.last().refused = false
		}
	case due > q.clock.Now():
		last = q.line(back)
		last.add(lineTurn{at: back.Turn, due: due, refused: true})
	}
	if last != nil {
		q.balance(last)
	}
}
