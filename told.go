package caddyratelimit

import (
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// told is what was decided on a request, for all who want to know: the client, handlers
// behind, error routes, the access log, the trace. All handlers that a request passes
// share one; it speaks of the zone that binds most. It lives as long as the request.
type told struct {
	writer
	values [2]string // of header fields, if there are not more
	retry  [1]string // of Retry-After

	vars       map[string]any // the request's
	outcome    outcome.Outcome
	zone       *zone.Zone        // nil if nothing was decided
	grant      *zone.QuotaPolicy // the zone's; nil if it refused without asking the store
	decision   algorithms.Decision
	cost       int64
	share      float64    // what is left of the quota
	retryAfter int64      // in whole seconds; 0 if the request may pass
	dry        bool       // the zone is a dry run: there was no other
	tried      bool       // there were dry runs
	would      *zone.Zone // the dry run that would have refused
	policy     string     // RateLimit-Policy
	answers    []*answer
	own        [1]*answer // room for answers
}

// toldVar is the variable of a request that holds it, across its handlers and error
// routes.
const toldVar = "rate_limit"

// String is what the variable shows as {http.vars.rate_limit}.
func (t *told) String() string { return outcome.Names[t.outcome] }

// toldOf finds what the handlers before this one have told, or makes room for it.
func toldOf(r *http.Request, repl *caddy.Replacer) *told {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if t, ok := vars[toldVar].(*told); ok {
		return t
	}
	t := &told{vars: vars}
	t.answers = t.own[:0]
	if vars != nil {
		vars[toldVar] = t
	}
	repl.Map(t.placeholder)
	t.toAccessLog(r)
	return t
}

// toldBefore finds what handlers have told of a request; nil if they have not.
func toldBefore(r *http.Request) *told {
	t, _ := caddyhttp.GetVar(r.Context(), toldVar).(*told)
	return t
}

// binds tells whether to speak of another zone than before: a dry run says least, and
// of several others the one that refuses, or has the smallest share left, says most.
func (t *told) binds(dry, refuses bool, share float64) bool {
	if t.zone == nil || t.dry != dry {
		return t.zone == nil || t.dry
	}
	return refuses || t.outcome.Passes() && t.outcome != outcome.DryRun && share < t.share
}

// speakOf takes over what was decided in a zone, unless there is one that binds more.
func (t *told) speakOf(a *attempt, i int, o outcome.Outcome) bool {
	d, dry, share := &a.decisions[i], a.checks[i].Independent, left(&a.decisions[i])
	if !t.binds(dry, !d.Allowed, share) {
		return false
	}
	t.zone, t.grant, t.decision, t.cost, t.share = a.zones[i], a.grants[i], *d, a.checks[i].Cost, share
	t.outcome, t.retryAfter, t.dry = o, 0, dry
	return true
}

// tell sets out what the zones have decided that may refuse; passed is what becomes of
// the request if none does. Then its answer should go through the writer that it returns.
func (h *Handler) tell(w http.ResponseWriter, t *told, a *attempt, binding int, passed outcome.Outcome) http.ResponseWriter {
	o, refused := passed, !a.decisions[binding].Allowed
	if refused {
		o = a.zones[binding].RefusalOutcome(&a.decisions[binding])
	}
	if t.speakOf(a, binding, o) && refused {
		t.retryAfter = h.answer.retryAfter(t.grant, &t.decision)
	}
	if t.grant == nil { // a request that was refused before any limit was asked, in its error routes
		return w
	}
	t.addPolicies(h.answer, a)
	if len(h.answer.fields.sent) > 0 {
		t.addAnswer(h.answer)
	}
	header := w.Header()
	for i, answer := range t.answers {
		values := t.values[:]
		if i > 0 || len(answer.fields.sent) > len(values) {
			values = make([]string, len(answer.fields.sent))
		}
		answer.setHeaders(header, t, values)
	}
	if refused {
		t.retry[0] = strconv.FormatInt(t.retryAfter, 10)
		header[fieldRetryAfter] = t.retry[:]
		return w
	}
	if len(t.answers) == 0 || t.wraps(w) {
		return w
	}
	if t.ResponseWriter != nil { // around another answer: this is an error route
		return &writer{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, fields: t.fields}
	}
	t.ResponseWriter = w
	return t
}

// tellDry sets out what the dry runs would have done. Clients do not hear of it.
func (h *Handler) tellDry(t *told, a *attempt, r *http.Request, passed outcome.Outcome) {
	t.tried = true
	for i := a.firm; i < len(a.zones); i++ {
		if !a.decisions[i].Allowed {
			f := h.refusal(a, i)
			h.note(r, &f)
		}
	}
	binding, would := a.binding(a.firm, len(a.zones))
	if would {
		t.would, passed = a.zones[binding], outcome.DryRun
	}
	t.speakOf(a, binding, passed)
}

// reject counts and tells of a request that is refused without asking the store, or
// would be if it were no dry run.
func (h *Handler) reject(r *http.Request, repl *caddy.Replacer, f *refusal) {
	t, o := toldOf(r, repl), outcome.Rejected
	if f.dry {
		t.tried, t.would, o = true, f.zone, outcome.DryRun
	}
	if t.binds(f.dry, true, 0) {
		t.zone, t.grant, t.outcome, t.retryAfter, t.dry = f.zone, nil, o, 0, f.dry
	}
	t.toTrace(r)
	f.zone.Stats.Add(f.key, o, stats.Untimed)
	feed.PublishWithoutDecision(r, f.zone.Name, f.key, o, f.err)
	h.note(r, f)
}

// tellFailure sets out that nothing was decided. The client gets to know of no limits
// that nobody has checked.
func tellFailure(r *http.Request, repl *caddy.Replacer, o outcome.Outcome) {
	t := toldOf(r, repl)
	t.outcome = o
	t.toTrace(r)
}

// addPolicies lists the zones of one more handler, each once.
func (t *told) addPolicies(by *answer, a *attempt) {
	if t.policy == "" {
		t.policy = by.policy(a)
		return
	}
	for i := range a.firm {
		if g := a.policyOf(i); !hasPolicy(t.policy, g) {
			t.policy = appendPolicy(t.policy, g)
		}
	}
}

// addAnswer has the fields of one more handler kept up to date.
func (t *told) addAnswer(a *answer) {
	for _, known := range t.answers {
		if known == a {
			return
		}
	}
	if t.answers = append(t.answers, a); len(t.answers) == 1 {
		t.fields = a.fields.names
		return
	}
	t.fields = append(t.fields[:len(t.fields):len(t.fields)], a.fields.names...)
}
