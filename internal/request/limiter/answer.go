package limiter

import (
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
)

// Answer is what the client of a request gets that does not pass.
type Answer struct {
	Entry         // that refuses; there is none if Zone is nil
	Err     error // the reason
	Status  int   // of the response
	Outcome outcome.Outcome

	// Told is the wait that Retry-After tells, before jitter and rounding. It is 0 if there is no Retry-After.
	Told time.Duration
}

// capacityWait is the wait that a client learns if the store does not answer.
const capacityWait = time.Second

// Answer returns what the client of a request gets that does not pass and has no Err. Its status is the given one
// for the refusal by a limit.
func (v *Verdict) Answer(usual int) Answer {
	e := v.Rejected()
	switch {
	case e != nil:
	case v.Failure == ErrLeft:
		return Answer{Outcome: v.Outcome, Err: v.Failure, Status: late.StatusClientClosedRequest}
	case v.Failure != nil:
		return Answer{Outcome: v.Outcome, Err: v.Failure, Status: http.StatusServiceUnavailable, Told: capacityWait}
	default:
		e = v.Binding
	}
	a := Answer{Entry: *e, Err: e.Reason(), Status: e.Check.Status, Outcome: e.refused()}
	if e.Policy != nil {
		a.Status, a.Told = usual, e.Waits().Told
	}
	return a
}
