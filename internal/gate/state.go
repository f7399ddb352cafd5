package gate

import (
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

// Class is what operators see of a class.
type Class struct {
	Running, Waiting int
	Refused          uint64 // requests that got no slot, because none was free in time or their clients have left

	// Ends counts the requests that have had a slot, and Slots is for how long they had it, by [Answer].
	Ends  [Left + 1]uint64
	Slots [Left + 1]time.Duration
}

// State returns what operators see of the gate, but for its name, and of the classes that it has now.
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
	for _, of := range g.classes {
		classes = append(classes, of.Class)
		s.Useful, s.Failed, s.Left = s.Useful+of.Ends[Useful], s.Failed+of.Ends[Failed], s.Left+of.Ends[Left]
		s.Refused += of.Refused
	}
	return s, classes[:g.last+1]
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
