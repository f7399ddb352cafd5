package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// exchange is a request from when it comes until it is over in some worlds. It implements [walk.Visitor].
type exchange struct {
	*held
	engine *engine
	server *caddyhttp.Server
	client string // its address: as the server finds it out, or as it is in the log
	person person // what it says about its client
	proxy  bool   // it came through a proxy that the server trusts
	end    int64  // when the request was over, by the log
	failed error  // why it could not be decided

	ended       bool     // a zone has refused it, or could not decide
	status      int      // of the refusal
	refused     string   // the key that was refused; empty if the zone has none
	keys        []string // all that were met; only if somebody asks
	completions []*late.Completion
}

// anyPort is the port of clients, which no format has.
const anyPort = ":50000"

// make makes the request as its server hands it to its routes. It returns nil if the server would not.
func (x *exchange) make() *http.Request {
	u, err := url.ParseRequestURI(x.URI)
	if x.Method == "" || err != nil {
		return nil
	}
	header := x.Header.Clone() // its way may change it
	if header == nil {
		header = make(http.Header)
	}
	r := &http.Request{
		Method: x.Method, URL: u, Host: cmp.Or(x.Host, x.engine.host), RequestURI: x.URI, Body: http.NoBody, Header: header,
		RemoteAddr: cmp.Or(x.RemoteIP, x.ClientIP),
	}
	if strings.Contains(r.RemoteAddr, ":") {
		r.RemoteAddr = "[" + r.RemoteAddr + "]"
	}
	if r.RemoteAddr != logs.Socket {
		r.RemoteAddr += anyPort
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = protocol(x.Proto)
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil {
		r.ContentLength = n
	}
	if x.Scheme == "https" || x.Scheme == "" && len(x.server.TLSConnPolicies) > 0 {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: walk.Hostname(r.Host)}
	}
	refused := walk.Admit(x.server, r)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, x.server)
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if x.RemoteIP != "" && !(x.engine.trusts[x.server] && x.forwarded() != "") { // else the server finds out the client
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
	err := walk.Walk(x, x.server, r)
	if answer := (caddyhttp.HandlerError{}); err != nil && x.failed == nil && !errors.As(err, &answer) {
		x.failed = err
	}
	if x.failed != nil {
		x.engine.unknown.fail(x.failed)
	}
}

var (
	errRefused          = errors.New("refused by a limit")
	errNotAuthenticated = errors.New("not authenticated")
)

// Handler implements [walk.Visitor].
func (x *exchange) Handler(h walk.Handler) {
	if h.Effect == walk.Assumed {
		x.engine.unknown.assume(h.Name, h.Note)
	}
}

// Decides implements [walk.Visitor]. The log has the names of users that were authenticated, and not their passwords.
func (x *exchange) Decides(h caddyhttp.MiddlewareHandler) bool {
	if _, ok := x.engine.index[h]; ok {
		return true
	}
	_, ok := h.(*caddyauth.Authentication)
	return ok
}

// Decide implements [walk.Visitor].
func (x *exchange) Decide(module caddyhttp.MiddlewareHandler, r *http.Request) (passes bool, err error) {
	if _, ok := module.(*caddyauth.Authentication); ok {
		return true, x.authenticate(r)
	}
	e := x.engine
	nth := e.index[module]
	h := e.config.Handlers[nth]
	e.deciding = x
	v := e.limiters[nth].Decide(r)
	e.count(x, nth, v)
	if e.decided != nil {
		x.meet(v)
	}
	switch {
	case v.Err != nil:
		x.failed, x.ended, err = v.Err, true, v.Err
	case v.Passes():
		passes = true
	default:
		answer := v.Answer(h.Status)
		if x.ended = true; x.status == 0 {
			x.status, x.refused = answer.Status, strings.Clone(answer.Key)
		}
		if !h.Respond.Final(r) {
			err = caddyhttp.HandlerError{Err: errRefused, StatusCode: answer.Status}
		}
	}
	if c := v.Release(); c != nil {
		x.completions = append(x.completions, c)
	}
	return passes, err
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

// meet notes the keys of a verdict.
func (x *exchange) meet(v *limiter.Verdict) {
	for _, entries := range [][]limiter.Entry{v.Entries, v.Rejections} {
		for i := range entries {
			x.keys = append(x.keys, strings.Clone(entries[i].Key))
		}
	}
}

// over gives back what a request has, and judges charges by its response, when it is over.
func (x *exchange) over() {
	if e := x.engine; e.decided != nil {
		e.decided(x)
	}
	if x.ended {
		x.settle(x.status)
	} else if len(x.completions) > 0 {
		x.engine.Plan(x.end, func() { x.settle(x.Status) })
	}
}

// settle ends the completions of a request whose response had a status.
func (x *exchange) settle(status int) {
	header := x.responseHeader(status)
	for _, c := range x.completions {
		c.Judge(status, header)
		c.ReadCost(header)
		c.Release()
		c.End()
	}
}

// responseHeader returns the header of the response in the log. A refusal has none of it.
func (x *exchange) responseHeader(status int) http.Header {
	if status != x.Status {
		return nil
	}
	return x.RespHeader
}

// guard is a matcher of a zone whose key, plan or matchers look at what the log may not have. A request that lacks it
// does not meet the zone: what the zone would decide instead says nothing, and it would keep the request from others.
type guard struct {
	*zoneTally
	engine *engine
	uses   []use
	last   *exchange // that was asked for, and whether it has all
	has    bool
}

// guarded adds the guard of a zone to its matchers, if it needs one.
func (e *engine) guarded(sets caddyhttp.MatcherSets, z *zoneTally) (guarded caddyhttp.MatcherSets) {
	if z.guard == nil {
		z.guard = &guard{zoneTally: z, engine: e}
		for _, u := range e.needs.uses {
			if u.zone == z.Name && u.decides() {
				z.guard.uses = append(z.guard.uses, u)
			}
		}
	}
	if len(z.guard.uses) == 0 {
		return sets
	}
	if len(sets) == 0 {
		return caddyhttp.MatcherSets{{z.guard}}
	}
	// It comes last, unless the others say what they say because of what the log lacks.
	first := slices.ContainsFunc(z.guard.uses, func(u use) bool { return u.option == "match" && !u.ofBody() })
	for _, set := range sets {
		if set = append(slices.Clone(set), z.guard); first {
			set = append(caddyhttp.MatcherSet{z.guard}, set...)
		}
		guarded = append(guarded, set)
	}
	return guarded
}

// CaddyModule implements [caddy.Module].
func (*guard) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: "http.matchers.replay"} }

// MatchWithError implements [caddyhttp.RequestMatcherWithError].
func (g *guard) MatchWithError(*http.Request) (bool, error) {
	if x := g.engine.deciding; g.last != x {
		why := g.lacking(x)
		if g.last, g.has = x, why == ""; !g.has {
			g.notJudged, g.why = g.notJudged+1, cmp.Or(g.why, why)
		}
	}
	return g.has, nil
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
