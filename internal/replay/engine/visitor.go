package engine

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// visitor decides a request where it meets rate limit handlers. It implements [walk.Visitor].
type visitor struct {
	*engine
	exchange *exchange
	only     int   // the world that it walks for; -1 for all
	failed   error // why a world could not decide
}

var (
	errRefused          = errors.New("refused by a limit")
	errNotAuthenticated = errors.New("not authenticated")
)

// Handler implements [walk.Visitor].
func (v *visitor) Handler(h walk.Handler) {
	if h.Effect == walk.Assumed {
		v.unknown.assume(h.Name, h.Note)
	}
}

// Decides implements [walk.Visitor]. The log has the names of users that were authenticated, and not their passwords.
func (v *visitor) Decides(h caddyhttp.MiddlewareHandler) bool {
	if _, ok := v.index[h]; ok {
		return true
	}
	_, ok := h.(*caddyauth.Authentication)
	return ok
}

// Decide implements [walk.Visitor].
func (v *visitor) Decide(h caddyhttp.MiddlewareHandler, r *http.Request) (passes bool, err error) {
	if _, ok := h.(*caddyauth.Authentication); ok {
		return true, v.authenticate(r)
	}
	nth, status := v.index[h], 0
	skipped := v.notJudged(nth)
	failing := r.Context().Value(caddyhttp.ErrorCtxKey) != nil // error routes, to which a refused request comes
	for i := range v.exchange.runs {
		run := &v.exchange.runs[i]
		if run.ended && !(failing && run.status != 0) || v.only >= 0 && i != v.only {
			continue
		}
		if skipped != 0 && v.worlds[i].try == nil {
			v.countNotJudged(nth, skipped, r)
		}
		verdict := v.worlds[i].limiter(nth, skipped).Decide(r)
		refused := 0
		if verdict.Err == nil && !verdict.Passes() {
			refused = verdict.Answer(v.config.Handlers[nth].Status).Status
		}
		v.tallies.decision(v.exchange, v.worlds[i], nth, verdict, v.Micros())
		failed := verdict.Err
		run.slots = run.slots || slots(verdict)
		if c := verdict.Release(); c != nil {
			run.completions = append(run.completions, c)
		}
		switch {
		case failed != nil:
			v.failed, run.ended, err = failed, true, failed
		case refused != 0:
			run.ended, run.status = true, cmp.Or(run.status, refused)
			status = refused
		default:
			passes = true
		}
	}
	switch {
	case passes || status != 0 && v.config.Handlers[nth].Final(r):
		return passes, nil
	case status == 0:
		return false, err
	case !v.needs.errors: // nobody asks for the error
		return false, nil
	}
	return false, caddyhttp.HandlerError{Err: errRefused, StatusCode: status}
}

// authenticate lets a request pass if the log has its user, or if it was not refused.
func (v *visitor) authenticate(r *http.Request) error {
	record := v.exchange.record
	if record.User == "" && record.Status == http.StatusUnauthorized {
		return caddyhttp.HandlerError{Err: errNotAuthenticated, StatusCode: http.StatusUnauthorized}
	}
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	repl.Set("http.auth.user.id", record.User)
	return nil
}

// slots reports whether a verdict has charged slots that last until the request is over.
func slots(v *limiter.Verdict) bool {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Policy.Slots && e.Decision.Allowed {
			return true
		}
	}
	return false
}
