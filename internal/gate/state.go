package gate

import "time"

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
