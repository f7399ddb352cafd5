package gate

import "time"

// State is what operators see of a gate at one moment.
type State struct {
	Limit, Running, Waiting, Keys int

	// Latency is the mean time of a slot.
	Latency time.Duration

	// Elasticity is the last judgment: 1 if twice the requests bring twice the answers, 0 if they bring no more.
	Elasticity float64

	// Held is whether requests wait, so that the gate learns.
	Held bool

	// Answers counts the requests that have had a slot, by [Answer].
	Answers [Left + 1]uint64

	// Classes are those that run and wait, by class.
	Classes []ClassState
}

// ClassState is the part of a class in a State.
type ClassState struct{ Running, Waiting int }

// KeyState is the part of a key in a gate.
type KeyState struct {
	Waiting int

	// Share is how many requests each key could have in the gate, if all had the same.
	Share int
}

// State returns the state at this time.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, l := &g.queue, g.limit
	s := State{
		Limit: l.n, Running: q.running, Waiting: q.waiting, Keys: len(q.keys),
		Latency: time.Duration(l.times.mean), Elasticity: l.trend + Rest, Held: l.full,
		Answers: g.answers, Classes: make([]ClassState, q.last+1),
	}
	for i := range q.classes {
		c := &s.Classes[min(i, int(q.last))] // a class that is gone counts as the last one
		c.Running += q.classes[i].running
		c.Waiting += q.classes[i].waiting
	}
	return s
}

// Key returns the part of a key.
func (g *Gate) Key(id uint64) KeyState {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := &g.queue
	s := KeyState{Share: max(1, (q.running+q.waiting)/(len(q.keys)+1))}
	if k := q.keys[id]; k != nil {
		s.Waiting = int(k.waiting)
	}
	return s
}
