package gate

import (
	"math"
	"time"
)

// Place is the place of one request: in the queue, then in the upstream.
type Place struct {
	// Notify is called once for a request that has waited: with true when it has a slot, with false when it
	// has made room for a newer request of its key. The caller holds the lock of the gate.
	Notify func(granted bool)

	ready chan bool // of a Gate
	line  *line     // in which the request waits
	key   *key      // of a request that runs and is counted for its key
	id    uint64    // of the key
	began int64     // ns, when it got its slot
	loose int       // where it is among those that run and are not counted
	class int16
	state state
}

type state uint8

const (
	outside state = iota
	waits
	runs
)

// Ready returns the channel that says once whether a request that has waited got a slot.
func (p *Place) Ready() <-chan bool { return p.ready }

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

func (e *Ends) add(other *Ends) {
	for i := range e {
		e[i].Count += other[i].Count
		e[i].Slots += other[i].Slots
	}
}

// Refusal is why a request gets no slot.
type Refusal struct {
	// Over is whether its key asks for more than twice its share of all that run and wait. Then the key is
	// too much, and else the upstream is too slow.
	Over bool

	// Ratio is refusals for each answer, lately.
	Ratio float64
}

// RetryAfter returns the seconds after which a client should come back: 1, and a part up to the ratio of
// refusals to answers, so that clients return at the pace of the upstream. It is at most 30. The random number
// is in [0, 1).
func (r Refusal) RetryAfter(random float64) int64 {
	return min(1+int64(random*(r.Ratio+1)), 30)
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
