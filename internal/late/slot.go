package late

import (
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Slot is a slot of an adaptive zone, which a request has or needs.
type Slot struct {
	Zone  *zone.Zone
	Key   string
	Class int
	Place *gate.Place // nil while the request does not have the slot
}

// Done gives the slot back.
func (s *Slot) Done(now time.Duration, a gate.Answer) {
	s.Zone.Gate.Done(int64(now), s.Place, a)
	s.Place = nil
}

// Hold makes the request hold a slot until its response begins, or, if the zone says so, until it is over.
func (c *Completion) Hold(by clock.Clock, s Slot) {
	c.clock, c.answer = by, gate.Left
	c.held = append(c.held, s)
}

// begin is called when the response begins: streams and slow readers hold no slot of an upstream that has answered.
func (c *Completion) begin(status int) {
	switch {
	case status == StatusClientClosedRequest:
		c.answer = gate.Left
	case status >= http.StatusInternalServerError:
		c.answer = gate.Failed
	default:
		c.answer = gate.Useful
	}
	c.free(false)
}

// free gives back the slots that are still held, or only those that the response frees. A request without a response
// was no use to anybody. It keeps its slots for as long as requests have them on average, because the upstream may work on.
func (c *Completion) free(over bool) {
	for i := range c.held {
		h := &c.held[i]
		if h.Place == nil || !over && h.Zone.Adaptive.Whole {
			continue
		}
		if c.answer == gate.Left {
			h.leave(c.clock)
		} else {
			h.Done(c.clock.Now(), c.answer)
		}
	}
}

// leave gives the slot back of a request whose client has left, now or later.
func (s *Slot) leave(by clock.Clock) {
	now := by.Now()
	hold := s.Zone.Gate.Hold(int64(now), s.Place)
	if hold == 0 {
		s.Done(now, gate.Left)
		return
	}
	later := *s
	by.AfterFunc(hold, func() { later.Done(by.Now(), gate.Left) })
	s.Place = nil
}
