// Package turns hands on the turns of requests whose clients leave a queue.
//
// A queue says when each request may leave it, and takes back only its last turn. So where
// a client leaves, each request behind it takes the turn of the one before it, and the last
// turn is given back. No turn moves, so the rate of the queue stays what it was.
//
// A queue has lines. In a line are the requests of this process that wait for the same key
// and have the same cost, so that their turns are equally long. A line is a list of turns
// and a list of requests, both in order, and the first request takes the first turn. To
// leave is to be taken off the one list. Then the last turn is one too many. That costs the
// same however many requests wait.
//
// The queue does not take a turn back while a later one is in use elsewhere: in another
// process, or in a line of another cost. Such a turn is spare. The next request that joins
// the line takes it, and the later turn of that request is given back. A spare turn is also
// offered again when a later one has come back, and now and then until it is over.
package turns

import (
	"sync"
	"time"
)

const (
	// maxLines is how many costs a queue tells apart, because clients may choose costs.
	maxLines = 16

	// maxSpare bounds the spare turns of all queues together.
	maxSpare = 100_000

	// firstPause is the time after which a spare turn is offered again. It doubles each time.
	firstPause = 100 * time.Millisecond
)

// Queue names a queue.
type Queue struct {
	State    string // of all keys
	Salt     uint64
	Override string // the key's own limit, if it has one
	Key      string
}

// Turn is a turn that somebody has in a queue.
type Turn struct {
	Queue Queue
	Cost  int64
	At    int64         // on the queue's clock
	Wait  time.Duration // from now on

	// Return gives some turn of this cost back to the queue. It calls told at most once, with
	// whether the queue has taken the turn, if that becomes known.
	Return func(at int64, told func(taken bool))
}

// Queues are the queues of a store.
type Queues struct {
	mu       sync.Mutex
	queues   map[Queue]*queue
	spare    int // turns of all queues
	returns  []offer
	busy     bool // a goroutine carries out returns
	keepOpen func() (release func())
}

// New makes queues. Hold keeps the store open until its result is called, which is nil if
// the store is closed already.
func New(hold func() (release func())) *Queues {
	return &Queues{queues: make(map[Queue]*queue), keepOpen: hold}
}

// queue is a queue in which somebody waits, or of which a turn is spare.
type queue struct {
	name       Queue
	lines      []*line
	pause      time.Duration // before the spare turns are offered again
	retryTimer *time.Timer   // for that; nil if none is set
}

// Join has a request wait for its turn. It returns nil if there are too many lines: then
// the request has to wait by itself.
func (q *Queues) Join(t *Turn) *Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(t)
	if l == nil {
		return nil
	}
	w := &Waiter{line: l, ready: make(chan struct{})}
	now := time.Now()
	l.release(now) // a spare turn that is over is nobody's
	l.join(w, lineTurn{at: t.At, due: now.Add(t.Wait)})
	q.balance(l)
	return w
}

// Leave takes a request off its line. It reports whether the request has had its turn
// before, which is then w.At: it has not been handed on.
func (q *Queues) Leave(w *Waiter) (came bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.over {
		return true
	}
	l := w.line
	l.leave(w)
	l.last().refused = false // perhaps the queue takes it now
	q.balance(l)
	return false
}

// Offer gives up a turn for which nobody waits in a line. One that is over is nobody's.
func (q *Queues) Offer(t *Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var l *line
	if t.Wait > 0 {
		l = q.line(t)
	}
	if l == nil {
		q.giveBack(offer{giveBack: t.Return, turn: lineTurn{at: t.At}})
		return
	}
	l.add(lineTurn{at: t.At, due: time.Now().Add(t.Wait)})
	q.balance(l)
}

// line finds the line of a turn, or makes it. It returns nil if there are too many. Like
// all that follows, it needs the lock.
func (q *Queues) line(t *Turn) *line {
	in := q.queues[t.Queue]
	if in == nil {
		in = &queue{name: t.Queue, pause: firstPause}
		q.queues[t.Queue] = in
	}
	for _, l := range in.lines {
		if l.cost == t.Cost {
			l.giveBack = t.Return
			return l
		}
	}
	if len(in.lines) == maxLines {
		return nil
	}
	l := &line{queues: q, queue: in, cost: t.Cost, giveBack: t.Return}
	in.lines = append(in.lines, l)
	return l
}

// balance gives back what is too much in a line, and forgets the line if it is empty.
func (q *Queues) balance(l *line) {
	for l.spare() > 0 && !l.last().refused {
		q.giveBack(offer{giveBack: l.giveBack, turn: l.removeLast(), line: l, pause: l.queue.pause})
	}
	q.spare += l.spare() - l.counted
	for l.counted = l.spare(); q.spare > maxSpare && l.counted > 0; l.counted-- {
		l.removeLast()
		q.spare--
	}
	l.setTimer()
	in := l.queue
	if len(l.turns) == 0 && l.waiting == 0 {
		in.remove(l)
	}
	in.scheduleRetry()
	if len(in.lines) == 0 {
		in.stopRetry()
		if q.queues[in.name] == in {
			delete(q.queues, in.name)
		}
	}
}
