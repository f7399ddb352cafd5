package report

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// near emits an event for each enforced zone whose limit the request has brought its key near to,
// once for a key in a window. A dry run emits none, because nothing has to be done about it.
func (p *Reporter) near(r *http.Request, v *limiter.Verdict) {
	if !p.Events.Wanted(eventNearLimit) {
		return
	}
	for i := range v.Enforced {
		if !v.IsNear(i) {
			continue
		}
		f := v.Refusal(i) // what a refusal would be
		if !p.dedup.first(&f, nearCategory) {
			continue
		}
		data := p.eventData(r, &f)
		delete(data, "wait")
		data["remaining"] = f.Decision.Remaining
		p.Events.Emit(eventNearLimit, data)
	}
}
