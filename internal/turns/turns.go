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
)

// maxSpare bounds the spare turns of all queues together. No bound is needed for lines: each has a turn or a request that waits.
const maxSpare = 100_000

// Queue identifies a queue in a store.
type Queue struct {
	State    string // of the rule, for all keys
	Salt     uint64
	Override string // the override of the key, if it has one
	Key      string
}

// Turn is a turn of a request in a queue.
type Turn struct {
	Queue Queue
	Cost  int64
	At    int64         // on the clock of the store
	Wait  time.Duration // from now until the turn

	// Return gives any turn of this cost back to the queue. It calls done at most once, when it
	// is known whether the queue has taken the turn.
	Return func(at int64, done func(taken bool))
}

// Queues has the queues of a store in which requests of this process wait.
type Queues struct {
	mu       sync.Mutex
	lines    map[Queue][]*line // in which requests wait, or which have spare turns
	spare    int               // turns of all queues
	returns  []turnReturn
	busy     bool // a goroutine sends the returns
	keepOpen func() (release func())
	clock    clock.Clock
}

// turnReturn is a turn that is being given back. It is in no line meanwhile.
type turnReturn struct {
	line     *line
	turn     lineTurn
	giveBack func(at int64, done func(taken bool))
}

// New makes Queues. keepOpen keeps the store open until the function that it returns is called. It
// returns nil if the store is already closed.
func New(c clock.Clock, keepOpen func() (release func())) *Queues {
	return &Queues{lines: make(map[Queue][]*line), keepOpen: keepOpen, clock: c}
}

// Join adds a request to the line of its turn.
func (q *Queues) Join(t *Turn) *Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(t)
	w := &Waiter{line: l, ready: make(chan struct{})}
	now := q.clock.Now()
	l.release(now) // so that no spare turn is used that is over
	l.join(w, lineTurn{at: t.At, due: now + t.Wait})
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

// line returns the line of a turn, and makes it if there is none. The caller must hold the lock.
func (q *Queues) line(t *Turn) *line {
	lines := q.lines[t.Queue]
	for _, l := range lines {
		if l.cost == t.Cost {
			l.giveBack = t.Return
			return l
		}
	}
	l := &line{queues: q, name: t.Queue, cost: t.Cost, giveBack: t.Return}
	q.lines[t.Queue] = append(lines, l)
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
	rest := slices.DeleteFunc(q.lines[l.name], func(other *line) bool { return other == l })
	if q.lines[l.name] = rest; len(rest) == 0 {
		delete(q.lines, l.name)
	}
}

// enqueueReturn gives a turn back to the queue. A goroutine does this, because a store may call
// done at once, and in order, because the queue takes only its last turn. The caller must hold the
// lock.
func (q *Queues) enqueueReturn(l *line, t lineTurn) {
	q.returns = append(q.returns, turnReturn{l, t, l.giveBack})
	if q.busy {
		return
	}
	release := q.keepOpen()
	if release == nil { // the store is closed
		q.returns = nil
		return
	}
	q.busy = true
	go q.sendReturns(release)
}

// sendReturns gives turns back until there are no more.
func (q *Queues) sendReturns(release func()) {
	defer release()
	for {
		q.mu.Lock()
		all := q.returns
		q.returns, q.busy = nil, len(all) > 0
		q.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, r := range all {
			r.giveBack(r.turn.at, func(taken bool) { q.returned(r, taken) })
		}
	}
}

// returned is called when it is known whether the queue has taken a turn back. A turn that was
// refused becomes spare again. After one that was taken, the queue may take the last spare one.
func (q *Queues) returned(r turnReturn, taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var last *line
	switch {
	case taken:
		for _, l := range q.lines[r.line.name] {
			if l.spare() > 0 && (last == nil || l.last().at > last.last().at) {
				last = l
			}
		}
		if last != nil {
			last.last().refused = false
		}
	case r.turn.due > q.clock.Now():
		last = q.line(&Turn{Queue: r.line.name, Cost: r.line.cost, Return: r.giveBack})
		r.turn.refused = true
		last.add(r.turn)
	}
	if last != nil {
		q.balance(last)
	}
}
