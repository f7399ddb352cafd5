package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// exchange is a request from when it comes until it is over in some engines. It implements [walk.Visitor].
type exchange struct {
	*held
	*setup
	server *server
	client string // its address: as the server finds it out, or as it is in the log
	person person // what it says about its client
	proxy  bool   // it came through a proxy that the server trusts
	ways   []way
	failed error             // why it could not be decided
	lacks  map[string]string // what zones need and the log does not have; nothing if it has all
}

// way is what happens to a request in one engine.
type way struct {
	*exchange
	engine *engine
	end    int64 // when the request was over, by the log

	ended       bool     // a zone has refused it, or could not decide
	status      int      // of the refusal
	refused     string   // the key that was refused; empty if the zone has none
	keys        []string // all that were met; only if somebody asks
	completions []*late.Completion
}

const (
	anyPort     = "50000" // of clients, which no format has
	exchangeVar = "rate_limit_replay"
)

// make makes the request as its server hands it to its routes. It returns nil if the server would not, or the config
// has none, as one without limits that is compared with another.
func (x *exchange) make() *http.Request {
	u, err := url.ParseRequestURI(x.URI)
	if x.server == nil || x.Method == "" || err != nil {
		return nil
	}
	header := x.Header.Clone() // its way may change it
	if header == nil {
		header = make(http.Header)
	}
	r := &http.Request{
		Method: x.Method, URL: u, Host: cmp.Or(x.Host, x.host), RequestURI: x.URI, Body: http.NoBody, Header: header,
		RemoteAddr: cmp.Or(x.RemoteIP, x.ClientIP),
	}
	if r.RemoteAddr != logs.Socket {
		r.RemoteAddr = net.JoinHostPort(r.RemoteAddr, anyPort)
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = protocol(x.Proto)
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil {
		r.ContentLength = n
	}
	if x.Scheme == "https" || x.Scheme == "" && len(x.server.TLSConnPolicies) > 0 {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: walk.Hostname(r.Host)}
	}
	refused := walk.Admit(x.server.Server, r)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, x.server.Server)
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	vars[exchangeVar] = x
	if x.RemoteIP != "" && !(x.server.trusts && x.forwarded() != "") { // else the server finds out the client
		vars[caddyhttp.ClientIPVarKey] = x.ClientIP
	}
	x.client, _ = vars[caddyhttp.ClientIPVarKey].(string)
	x.proxy, _ = vars[caddyhttp.TrustedProxyVarKey].(bool)
	if refused != nil {
		return nil
	}
	return r
}

// forwarded returns the header in which a proxy has passed on its client's address; empty without one.
func (x *exchange) forwarded() string {
	for _, name := range x.server.ClientIPHeaders {
		if value := x.Header.Get(name); value != "" && value != logs.Redacted {
			return http.CanonicalHeaderKey(name)
		}
	}
	return ""
}

// protocol reads the protocol of a log, which may lack the minor version.
func protocol(text string) (string, int, int) {
	if text == "HTTP/2" || text == "HTTP/3" {
		text += ".0"
	}
	if major, minor, ok := http.ParseHTTPVersion(text); ok {
		return text, major, minor
	}
	return "HTTP/1.1", 1, 1
}

// walk sends a request through the routes.
func (x *exchange) walk(r *http.Request) {
	err := walk.Walk(x, x.server.Server, httptest.NewRecorder(), r, false)
	if answer := (caddyhttp.HandlerError{}); err != nil && x.failed == nil && !errors.As(err, &answer) {
		x.failed = err
	}
	if x.failed != nil {
		u := x.ways[0].engine.unknown
		u.failed, u.why = u.failed+1, cmp.Or(u.why, x.failed)
	}
}

var (
	errRefused          = errors.New("refused by a limit")
	errNotAuthenticated = errors.New("not authenticated")
)

// Meets implements [walk.Visitor].
func (x *exchange) Meets(s adminapi.Step) {
	if s.Effect == walk.Assumed {
		handlers := x.ways[0].engine.unknown.handlers
		handlers[s.Handler] = cmp.Or(handlers[s.Handler], s.Note)
	}
}

// Answer implements [walk.Visitor]. The log has the answer.
func (x *exchange) Answer(caddyhttp.MiddlewareHandler, http.ResponseWriter, *http.Request) error {
	return nil
}

// Decides implements [walk.Visitor]. The log has the names of users that were authenticated, and not their passwords.
func (x *exchange) Decides(h caddyhttp.MiddlewareHandler) bool {
	_, isAuthentication := h.(*caddyauth.Authentication)
	return isAuthentication || x.config.Handler(h) != nil
}

// Serve implements [walk.Visitor]. The request goes on as long as it does in one of the engines.
func (x *exchange) Serve(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	h := x.config.Handler(module)
	if h == nil {
		if err = x.authenticate(r); err != nil {
			return err
		}
		return next.ServeHTTP(rw, r)
	}
	passes := false
	for i := range x.ways {
		if w := &x.ways[i]; !w.ended || len(x.ways) == 1 { // in error routes, where each is alone, it is decided again
			w.ended, err = w.decide(h, r)
			passes = passes || !w.ended
		}
	}
	if passes {
		return next.ServeHTTP(rw, r)
	}
	return err
}

// decide decides at a handler.
func (w *way) decide(h *trial.Handler, r *http.Request) (ended bool, err error) {
	v := w.engine.limiters[h].Decide(r)
	w.engine.count(w, v)
	switch {
	case v.Err != nil:
		w.failed, ended, err = v.Err, true, v.Err
	case !v.Passes():
		answer := v.Answer(h.Status)
		if ended = true; w.status == 0 {
			w.status, w.refused = answer.Status, strings.Clone(answer.Key)
		}
		if !h.Respond.Final(r) {
			err = caddyhttp.HandlerError{Err: errRefused, StatusCode: answer.Status}
		}
	}
	if c := v.Release(); c != nil {
		w.completions = append(w.completions, c)
	}
	return ended, err
}

// authenticate lets a request pass if the log has its user, or if it was not refused.
func (x *exchange) authenticate(r *http.Request) error {
	if x.User == "" && x.Status == http.StatusUnauthorized {
		return caddyhttp.HandlerError{Err: errNotAuthenticated, StatusCode: http.StatusUnauthorized}
	}
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	repl.Set("http.auth.user.id", x.User)
	return nil
}

// over gives back what a request has, and judges charges by its response, when it is over.
func (x *exchange) over() {
	for i := range x.ways {
		w := &x.ways[i]
		if w.engine.decided != nil {
			w.engine.decided(w)
		}
		if w.ended {
			w.settle(w.status)
		} else if len(w.completions) > 0 {
			w.engine.Plan(w.end, func() { w.settle(w.Status) })
		}
	}
}

// settle ends the completions of a request whose response had a status. A refusal has none of the header in the log.
func (w *way) settle(status int) {
	header := w.RespHeader
	if status != w.Status {
		header = nil
	}
	for _, c := range w.completions {
		c.Judge(status, header)
		c.Release()
		c.End()
	}
}

// guard is a matcher of a zone whose key, plan or matchers look at what the log may not have. A request that lacks it
// does not meet the zone: what the zone would decide instead says nothing, and it would keep the request from others.
type guard struct {
	zone string
	uses []use
}

// guarded returns the matchers of a zone, with its guard if it needs one.
func (n *needs) guarded(z *zone.Zone) (guarded caddyhttp.MatcherSets) {
	g := &guard{zone: z.Name}
	first := false // it comes last, unless the others say what they say because of what the log lacks
	for _, u := range n.uses {
		if u.zone == z.Name && u.decides() {
			g.uses = append(g.uses, u)
			first = first || u.option == "match" && !u.ofBody()
		}
	}
	if len(g.uses) == 0 {
		return z.Matchers
	}
	if len(z.Matchers) == 0 {
		return caddyhttp.MatcherSets{{g}}
	}
	for _, set := range z.Matchers {
		if set = append(slices.Clone(set), g); first {
			set = append(caddyhttp.MatcherSet{g}, set...)
		}
		guarded = append(guarded, set)
	}
	return guarded
}

// CaddyModule implements [caddy.Module].
func (*guard) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: "http.matchers.replay"} }

// MatchWithError implements [caddyhttp.RequestMatcherWithError].
func (g *guard) MatchWithError(r *http.Request) (bool, error) {
	x := caddyhttp.GetVar(r.Context(), exchangeVar).(*exchange)
	why, known := x.lacks[g.zone]
	if !known {
		if x.lacks == nil {
			x.lacks = make(map[string]string)
		}
		why = g.lacking(x)
		x.lacks[g.zone] = why
		if z := x.ways[0].engine.tallies.zones[g.zone]; why != "" {
			z.notJudged, z.why = z.notJudged+1, cmp.Or(z.why, why)
		}
	}
	return why == "", nil
}

// lacking says what the log does not have of a request; nothing if it has all.
func (g *guard) lacking(x *exchange) string {
	for _, u := range g.uses {
		switch {
		case u.header == "" || !x.source.reader.Format().Header.Has(u.header):
			return u.what + ", which its " + u.option + " needs, is not in the log"
		case slices.Contains(x.Header[u.header], logs.Redacted):
			return u.what + ", which its " + u.option + " needs, is redacted in the log"
		}
	}
	return ""
}
