// Package gate lets requests through to an upstream: so many at once as the upstream can use. It finds
// that number itself, lets the other requests wait shortly, and shares the slots fairly among keys.
//
// The limit. While requests wait, the gate alternates between two limits, one step apart, and counts
// useful answers per second under each of them. If twice the requests bring twice the answers, the
// upstream is not full and the limit rises. If they bring no more, they only wait longer inside the
// upstream, and the limit falls. Latencies are not judged, so nobody has to say what is slow. While
// nothing waits, nothing is learned, and the limit stays.
//
// The rhythm. Phases follow the wall clock: the upper limit holds in odd ones. So all gates in front of
// one upstream go up and down together, without a word between them. If each of them probed alone, each
// would see that it gets more when it takes more, and no limit would ever rest.
//
// The queue. A slot that is free goes to the class that has had the least for its weight. In it, it goes to the key of which
// the fewest requests run, of equal ones to the key that has had the least time of slots, and of that key to the oldest
// request. Once the queue was never empty for half of the longest wait, the newest goes first: its client is still there.
// Keys that were never served share the turns of one key, so a crowd of new keys cannot starve the known ones.
//
// The shares. Nobody takes a slot back from a request that runs long. So while several keys come, each leaves as many slots
// free as it has, and slots that a key has beyond those of another do not count for that one. At most twice as many run as
// the limit says. A client that leaves keeps its slot for as long as requests have one on average.
//
// Nothing here has a clock or a goroutine. Times are passed in, so a simulator can play a year. A
// request that waits is a [Place] in a list, and its own goroutine waits for the channel of the place.
package gate

import (
	"sync"
	"time"
)

// Options configure a Gate.
type Options struct {
	// Min and Max bound the limit, and Max what runs. A Min below 1 is 1. 0 is no Max.
	Min, Max int

	// MaxWait is the longest that a request waits. The gate has no timer: the caller must call [Gate.Leave].
	MaxWait time.Duration

	// Weights are the weights of the classes, at least 1 class. None is one class.
	Weights []float64

	// Wall returns the nanoseconds of the wall clock. It is called once in a phase. nil: the times that are
	// passed in are those of the wall clock.
	Wall func() int64
}

// Gate is a [Queue] and a [Limit] behind a lock. Its methods may be called from many goroutines at once.
type Gate struct {
	mu     sync.Mutex
	now    int64 // the latest time that was passed in
	queue  *Queue
	limit  *Limit
	places sync.Pool
}

// New returns a gate that has seen nothing.
func New(o Options) *Gate {
	limit := NewLimit(o)
	g := &Gate{limit: limit, queue: NewQueue(limit, o)}
	g.places.New = func() any {
		p := &Place{ready: make(chan bool, 1)}
		p.Notify = func(granted bool) { p.ready <- granted }
		return p
	}
	return g
}

// Configure gives the gate other bounds, waits and weights. What it has learned stays. Requests of classes
// that are gone go to the last class.
func (g *Gate) Configure(o Options) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit.configure(o)
	g.queue.configure(o)
	g.queue.advance(g.now)
}

// Enter asks for a slot at a time in ns. If the request has no slot at once, it waits until its place is ready or until
// Leave. The key is a hash with a secret seed.
func (g *Gate) Enter(now int64, key uint64, class int) (p *Place, running bool) {
	p = g.places.Get().(*Place)
	g.mu.Lock()
	running = g.queue.Arrive(g.latest(now), p, key, class)
	g.mu.Unlock()
	return p, running
}

// Leave takes a request that waits out of the queue. It reports false if the request does not wait any
// more: then the channel of its place has the answer.
func (g *Gate) Leave(now int64, p *Place) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queue.Leave(g.latest(now), p)
}

// Refuse says why a request that has left or was refused gets no slot, and forgets its place.
func (g *Gate) Refuse(now int64, p *Place) (r Refusal) {
	g.mu.Lock()
	r = Refusal{Over: g.queue.over(p), Ratio: g.queue.pace.add(g.latest(now), 0, 1)}
	g.mu.Unlock()
	g.places.Put(p)
	return r
}

// Abandon forgets the place of a request whose client has left.
func (g *Gate) Abandon(now int64, p *Place) {
	if !g.Leave(now, p) && <-p.ready {
		g.Done(now, p, Left)
		return
	}
	g.places.Put(p)
}

// Done gives the slot of a request back.
func (g *Gate) Done(now int64, p *Place, a Answer) {
	g.mu.Lock()
	g.queue.Done(g.latest(now), p, a)
	g.mu.Unlock()
	g.places.Put(p)
}

// Hold returns for how much longer a request has its slot whose client has left. Call [Gate.Done] then.
func (g *Gate) Hold(now int64, p *Place) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.queue.Hold(g.latest(now), p))
}

// latest returns a time that does not go back: callers read their clock before they have the lock.
func (g *Gate) latest(now int64) int64 {
	g.now = max(g.now, now)
	return g.now
}

// State is what operators see of a gate at one moment.
type State struct {
	Limit, Running, Waiting, Keys int

	// Latency is the mean time of a slot.
	Latency time.Duration

	// Spread is the mean of the squares of these times, divided by the square of their mean: 1 if all slots are taken for
	// as long, 2 for those of a memoryless server. Where quick and slow requests share a gate, it is more.
	Spread float64

	// Elasticity is the last judgment: 1 if twice the requests bring twice the answers, 0 if they bring no more.
	Elasticity float64

	// Held is whether requests wait, so that the gate learns.
	Held bool

	// Since is when the shortage began of which requests wait, by the wall clock. It may have had pauses of up to a
	// minute. It is the zero time while nothing waits.
	Since time.Time

	// Classes are those that run, wait and have had a slot, by class.
	Classes []ClassState
}

// ClassState is the part of a class in a State.
type ClassState struct {
	Running, Waiting int
	Ends             Ends // of requests that have had a slot
}

// State returns the state at this time.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, l := g.queue, g.limit
	s := State{
		Limit: l.n, Running: q.running, Waiting: q.waiting, Keys: len(q.keys),
		Latency: time.Duration(l.times.mean), Spread: l.times.slot() / max(l.times.mean, 1), Elasticity: l.trend + Rest, Held: l.holds(q.running, q.waiting),
		Classes: make([]ClassState, q.last+1),
	}
	if q.waiting > 0 {
		s.Since = time.Unix(0, q.tight+l.rhythm.offset)
	}
	for i := range q.classes {
		c := &s.Classes[min(i, int(q.last))] // a class that is gone counts as the last one
		c.Running += q.classes[i].running
		c.Waiting += q.classes[i].waiting
		c.Ends.add(&q.classes[i].ends)
	}
	return s
}
