package caddyratelimit

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// hold is what lasts until a request is over: slots, charges that depend on the
// response, and with them the store. The store is not there if it gave no answer.
type hold struct {
	use         pool.Session
	corrections []store.Adjustment
	late        []lateCharge
	strips      []string
	handler     *Handler
	body        *requestBody // nil if there is none, or no late charge
	errors      *witness     // of the answer to the request's error, if that decides on charges
}

// hold makes the hold of a request that may pass.
func (a *attempt) hold(u pool.Session) *hold {
	return &hold{use: u, corrections: a.held(), late: a.lateCharges(), strips: a.strips}
}

// unheld is the hold of a request for which nothing was charged, if it needs one.
func (a *attempt) unheld() *hold {
	if len(a.strips) == 0 {
		return nil
	}
	return &hold{strips: a.strips}
}

func (a *attempt) orUnheld(held *hold) *hold {
	if held == nil {
		held = a.unheld()
	}
	return held
}

// serve handles the request, and gives back what it held, after a panic too.
func (h *hold) serve(by *Handler, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	defer h.release()
	if len(h.late) == 0 && len(h.strips) == 0 {
		return next.ServeHTTP(w, r)
	}
	h.handler = by
	return h.watch(w, r, next)
}

func (h *hold) release() {
	if h.use.Store == nil {
		return
	}
	h.use.Adjust(h.corrections...)
	if h.errors != nil {
		h.errors.release()
		return
	}
	h.use.End()
}

// correction gives back all of a charge.
func (a *attempt) correction(i int) store.Adjustment {
	c, d := a.checks[i], &a.decisions[i]
	return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -c.Cost, Override: d.Override}
}

// charged tells whether a zone has charged anything.
func (a *attempt) charged(i int) bool { return a.decisions[i].Allowed && a.checks[i].Cost > 0 }

// held are the charges that last until the request is over.
func (a *attempt) held() (back []store.Adjustment) {
	for i := range a.checks {
		if a.checks[i].Hold != "" && a.charged(i) {
			back = append(back, a.correction(i))
		}
	}
	return back
}

// unserved is what to give back if the request is not handled, beside its turns: what it
// holds, what only its response would have charged, and what dry runs have charged.
func (a *attempt) unserved() (back []store.Adjustment) {
	for i := range a.checks {
		dry := i >= a.firm && a.decisions[i].Delay > 0
		if a.charged(i) && !a.queues(i) && (a.checks[i].Hold != "" || dry || a.zones[i].ChargeOnResponse != nil) {
			back = append(back, a.correction(i))
		}
	}
	return back
}
