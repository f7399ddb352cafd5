package gate

import (
	"math"
	"time"
)

// Answer is how a request ended that had a slot.
type Answer uint8

const (
	// Useful is an answer of the upstream for a client that is still there.
	Useful Answer = iota

	// Failed is an answer that says that the upstream failed, or none.
	Failed

	// Left is a request whose client has left before the answer.
	Left
)

// AnswerNames are the names of answers in metrics.
var AnswerNames = [Left + 1]string{Useful: "useful", Failed: "failed", Left: "left"}

// Ends count the requests that have had a slot, by [Answer].
type Ends [Left + 1]End

// End counts the requests that have had a slot and ended in one way.
type End struct {
	Count uint64
	Slots time.Duration // for which they had a slot, in total
}

func (e *End) add(other End) {
	e.Count += other.Count
	e.Slots += other.Slots
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
	l := g.limit
	s := State{
		Limit: l.n, Running: g.running, Waiting: g.waiting, Keys: len(g.keys),
		Latency: time.Duration(l.times.mean), Spread: l.times.slot() / max(l.times.mean, 1), Elasticity: l.trend + Rest, Held: l.holds(g.running, g.waiting),
		Classes: make([]ClassState, g.last+1),
	}
	if g.waiting > 0 {
		s.Since = time.Unix(0, g.tight+l.rhythm.offset)
	}
	for i := range g.classes {
		c, of := &s.Classes[min(i, g.last)], &g.classes[i] // a class that is gone counts as the last one
		c.Running += of.running
		c.Waiting += of.waiting
		for end := range of.ends {
			c.Ends[end].add(of.ends[end])
		}
	}
	return s
}

// pace counts answers and refusals lately: those of 3 s ago count for a third.
type pace struct {
	answers, refusals float64
	at                int64
}

const paceTime = 3e9 // ns

// add counts some more, and returns refusals for each answer.
func (p *pace) add(now int64, answers, refusals float64) float64 {
	fade := math.Exp(-float64(now-p.at) / paceTime)
	p.at, p.answers, p.refusals = now, p.answers*fade+answers, p.refusals*fade+refusals
	return p.refusals / max(p.answers, 1)
}
