package limiter

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// delay returns how long an allowed request must wait for its turn.
func (v *Verdict) delay() (d time.Duration) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.queues() {
			d = max(d, e.Decision.Delay)
		}
	}
	return d
}

// queue waits until all turns of the request have come, and reports whether the client has stayed. If the client
// leaves, its turns are handed on.
func (v *Verdict) queue(s pool.Session, delay time.Duration) bool {
	if s.Turns == nil { // nobody leaves, so no turn is handed on
		return v.wait.pause(v.Request.Request, delay)
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; e.queues() {
			e.waiter = s.Turns.Join(e.giveBack(), e.Decision.Delay)
		}
	}
	stays := true
	for i := range v.Entries {
		if w := v.Entries[i].waiter; w != nil {
			stays = stays && v.wait.sleep(v.Request.Request, w.Ready())
		}
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; e.waiter != nil && (stays || s.Turns.Leave(e.waiter)) {
			e.Decision.Delay = time.Duration(e.waiter.At()-e.Decision.At) * time.Microsecond // for later adjustments of the charge
			e.waiter = nil
		}
	}
	if !stays {
		s.Adjust(v.giveBack((*Entry).unserved)...)
	}
	return stays
}

// unserved reports whether a charge is given back if the handlers behind do not get the request, besides turns that are handed on:
// one that lasts until the request is over, one that its response decides on, or a turn that has come or is one of a dry run.
func (e *Entry) unserved() bool {
	return e.waiter == nil && (e.lease != "" || e.Decision.Delay > 0 || e.Zone.Charge.Matcher != nil)
}
