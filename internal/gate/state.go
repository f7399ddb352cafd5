package gate

import (
	"math"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
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

// Class is what operators see of a class.
type Class struct {
	Running, Waiting int
	Refused          uint64 // requests that got no slot, because none was free in time or their clients have left
	Ends             Ends   // of requests that have had a slot
}

// State returns what operators see of the gate, but for its name, and of its classes.
func (g *Gate) State() (s adminapi.Adaptive, classes []Class) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limit
	s = adminapi.Adaptive{
		Limit: l.n, Running: g.running, Waiting: g.waiting, Trend: g.trend(),
		Latency: l.times.mean / 1e9, Spread: l.times.slot() / max(l.times.mean, 1),
	}
	if g.waiting > 0 {
		since := time.Unix(0, g.tight+l.rhythm.offset).Truncate(time.Second)
		s.Since = &since
	}
	classes = make([]Class, g.last+1)
	for i := range g.classes {
		c, of := &classes[min(i, g.last)], &g.classes[i] // a class that is gone counts as the last one
		c.Running += of.Running
		c.Waiting += of.Waiting
		c.Refused += of.Refused
		for end := range of.Ends {
			c.Ends[end].add(of.Ends[end])
		}
		s.Useful, s.Failed, s.Left = s.Useful+of.Ends[Useful].Count, s.Failed+of.Ends[Failed].Count, s.Left+of.Ends[Left].Count
		s.Refused += of.Refused
	}
	return s, classes
}

// trend says what the limit does.
func (g *Gate) trend() string {
	const rests = 0.15 // within so much of rest
	switch l := g.limit; {
	case !l.holds(g.running, g.waiting):
		return "nothing waits"
	case l.trend > rests:
		return "goes up"
	case l.trend < -rests:
		return "goes down"
	}
	return "rests"
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
