package respond

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// fieldChallenge says how to authenticate, by RFC 9110, section 11.6.1.
const fieldChallenge = "Www-Authenticate"

// refuse ends a request that does not pass. Where the store does not answer, or this Caddy is too busy to ask, the
// client is not the reason, so nothing of the request is told.
func (p *Responder) refuse(w http.ResponseWriter, r *http.Request, v *limiter.Verdict) error {
	a, t, header := v.Answer(p.Status), p.recordOf(v, new(record)), w.Header()
	retryAfter := p.retryAfter(a.Told)
	switch {
	case a.Zone == nil: // nobody has decided, so the header describes no limits
		t.outcome = v.Outcome
		if a.Status == late.StatusClientClosedRequest && !isErrorRoute(r) {
			return caddyhttp.Error(a.Status, a.Err)
		}
		retryAfter = zone.CeilSeconds(a.Told) // without jitter
	case a.Policy == nil: // a zone rejects the request without a limit
		if a.Err == zone.ErrNoKey && a.Zone.Challenge != "" && header.Get(fieldChallenge) == "" {
			header.Set(fieldChallenge, a.Zone.Challenge) // which error routes may replace
		}
	case v.Rejected() != nil: // a network is banned
		t.retryAfter = retryAfter
	default: // a limit refuses
		p.recordDecision(t, w, v, retryAfter)
	}
	if retryAfter > 0 {
		header.Set(fieldRetryAfter, strconv.FormatInt(retryAfter, 10))
	}
	switch {
	case isGRPC(r):
		writeGRPC(w, &a, retryAfter)
		return nil
	case p.Problem:
		return writeProblem(w, r, &a, v, retryAfter)
	}
	// Making an error takes Caddy longer than a decision takes the limiter, and Caddy logs each error with a status of 500 and
	// above; both matter in a flood. So there is one only for error routes.
	if p.ErrorRoutes(r) {
		p.keepFields(r)
		return caddyhttp.Error(a.Status, a.Err)
	}
	w.WriteHeader(a.Status)
	return nil
}

// keepFields keeps the headers of an upstream out of the response of error routes.
func (p *Responder) keepFields(r *http.Request) {
	by := &p.Fields
	if t, ok := caddyhttp.GetVar(r.Context(), recordVar).(*record); ok && t.by() != nil { // of all handlers
		by = t.by()
	}
	kept := &writers.Response{Watcher: &Fields{names: append(slices.Clip(by.names), fieldRetryAfter)}}
	kept.WrapServer(r)
}

// ErrorRoutes reports whether errors of this handler may reach error routes: those of the server, as handle_errors makes them,
// or those of a subroute around it, which only JSON can have.
func (p *Responder) ErrorRoutes(r *http.Request) bool {
	server := p.serverOf(r)
	return p.caught || server == nil || server.Errors != nil && len(server.Errors.Routes) > 0 && !isErrorRoute(r)
}

// isErrorRoute reports whether the request has an error already. An error of an error route would be logged, and its status
// is not the one that clients get.
func isErrorRoute(r *http.Request) bool { return r.Context().Value(caddyhttp.ErrorCtxKey) != nil }

// caughtBySubroute reports whether a subroute around the handler has routes for errors.
func caughtBySubroute(ctx caddy.Context) bool {
	for _, module := range ctx.Modules() {
		if sub, ok := module.(*caddyhttp.Subroute); ok && sub.Errors != nil {
			return true
		}
	}
	return false
}
