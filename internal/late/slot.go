package late

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// heldSlot is a slot of an adaptive zone.
type heldSlot struct {
	whole  bool              // until all of the response was sent
	done   func(gate.Answer) // nil once it is given back
	answer gate.Answer
}

// Hold makes the request hold a slot until its response begins, or, if whole, until it is over. Then done is called.
func (c *Completion) Hold(whole bool, done func(gate.Answer)) {
	c.held = append(c.held, heldSlot{whole: whole, done: done, answer: gate.Left})
}

// begin is called when the response begins: streams and slow readers hold no slot of an upstream that has answered.
func (c *Completion) begin(status int) {
	for i := range c.held {
		h := &c.held[i]
		switch {
		case status == StatusClientClosedRequest:
			h.answer = gate.Left
		case status >= http.StatusInternalServerError:
			h.answer = gate.Failed
		default:
			h.answer = gate.Useful
		}
		if !h.whole {
			h.free()
		}
	}
}

// free gives back the slots that are still held. A request without a response was no use to anybody.
func (c *Completion) free() {
	for i := range c.held {
		c.held[i].free()
	}
}

func (h *heldSlot) free() {
	if h.done != nil {
		h.done(h.answer)
		h.done = nil
	}
}
