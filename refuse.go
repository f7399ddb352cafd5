package caddyratelimit

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// What on_limit can be.
const (
	onLimitStatus  = "status"
	onLimitProblem = "problem"
)

// refusal is what a zone says no with, or would if it were no dry run.
type refusal struct {
	zone     *zone.Zone
	key      string
	dry      bool
	begins   bool // a ban, of which this tells
	status   int
	err      error
	grant    *zone.QuotaPolicy // whose limit refuses; nil if the store was not asked
	decision algorithms.Decision
}

// refusal is that of a zone whose limit refuses.
func (h *Handler) refusal(a *attempt, i int) refusal {
	f := refusal{
		zone: a.zones[i], key: a.checks[i].Key, dry: a.checks[i].Independent, grant: a.grants[i], decision: a.decisions[i],
		status: h.Status, err: a.zones[i].Exceeded,
	}
	if len(f.zone.Reserve) > 0 && f.grant.Lends && !f.decision.Banned {
		f.status = http.StatusServiceUnavailable // it is the server that has too much to do
	}
	return f
}

// refuse ends a request that a zone refuses.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, f *refusal, a *attempt) error {
	if h.OnLimit == onLimitProblem {
		return writeProblem(w, r, f, a)
	}
	return h.end(w, r, f.status, f.err)
}

// end ends a request. It is an error only where somebody handles errors: Caddy takes
// longer to make one than the limiter takes to decide, and logs those of 500 and above
// at the rate of the requests; and floods are what the limiter is for.
func (h *Handler) end(w http.ResponseWriter, r *http.Request, status int, err error) error {
	if h.errorRoutes(r) {
		h.speakFirst(r)
		return caddyhttp.Error(status, err)
	}
	w.WriteHeader(status)
	return nil
}

// speakFirst keeps what an upstream says of limits out of what error routes answer.
func (h *Handler) speakFirst(r *http.Request) {
	fields := h.answer.fields.names
	if t := toldBefore(r); t != nil && len(t.fields) > 0 {
		fields = t.fields
	}
	fields = append(fields[:len(fields):len(fields)], fieldRetryAfter)
	beneath(r, func(inner http.ResponseWriter) http.ResponseWriter {
		return &writer{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: inner}, fields: fields}
	})
}

// errorRoutes reports whether there are routes that errors of this handler may reach: the
// server's, as handle_errors makes them, or those of a subroute, which only JSON can say.
func (h *Handler) errorRoutes(r *http.Request) bool {
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	return h.caught || server == nil || server.Errors != nil && len(server.Errors.Routes) > 0 ||
		len(server.NamedRoutes) > 0 && h.invoked.caught(server)
}

// caughtBySubroute reports whether a subroute around the handler has routes for errors.
func caughtBySubroute(ctx caddy.Context) bool {
	for _, module := range ctx.Modules() {
		if sub, ok := module.(*caddyhttp.Subroute); ok && sub.Errors != nil {
			return true
		}
	}
	return false
}

// invoked tells of subroutes that stand around named routes. Which do shows when all
// routes of the server are loaded, which is after the handler.
type invoked struct {
	once   sync.Once
	within bool
}

// caught reports whether the server has a subroute with routes for errors that invokes a
// named route.
func (i *invoked) caught(server *caddyhttp.Server) bool {
	i.once.Do(func() {
		i.within = catchesInvoked(server.Routes, false)
		for _, route := range server.NamedRoutes {
			i.within = i.within || catchesInvoked(caddyhttp.RouteList{*route}, false)
		}
	})
	return i.within
}

func catchesInvoked(routes caddyhttp.RouteList, within bool) bool {
	for _, route := range routes {
		for _, handler := range route.Handlers {
			switch handler := handler.(type) {
			case *caddyhttp.Invoke:
				if within {
					return true
				}
			case *caddyhttp.Subroute:
				if catchesInvoked(handler.Routes, within || handler.Errors != nil) ||
					handler.Errors != nil && catchesInvoked(handler.Errors.Routes, within) {
					return true
				}
			}
		}
	}
	return false
}

// problem is the body of a refusal (RFC 9457, and the draft of the header fields).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Policies []string `json:"violated-policies,omitempty"`
}

const (
	problemMediaType = "application/problem+json"
	quotaExceeded    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle       = "Request cannot be satisfied as assigned quota has been exceeded"
	noMoreThanStatus = "about:blank"
)

// writeProblem names the zones whose limits refuse as RateLimit-Policy does.
func writeProblem(w http.ResponseWriter, r *http.Request, f *refusal, a *attempt) error {
	p := problem{Type: noMoreThanStatus, Title: http.StatusText(f.status), Status: f.status}
	if f.grant != nil {
		p.Type, p.Title = quotaExceeded, quotaTitle
		for i, g := range a.grants[:a.firm] {
			if !a.decisions[i].Allowed {
				p.Policies = append(p.Policies, g.HeaderZone)
			}
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", problemMediaType)
	w.WriteHeader(f.status)
	if r.Method != http.MethodHead {
		_, err = w.Write(append(body, '\n'))
	}
	return err
}
