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
	proxy  bool   // it came through a proxy that the server trusts
	end    int64  // when the request was over, by the log
	worlds []*world
	ways   []way // by world
	failed error // why a world could not decide
}

// way is that of a request through the routes in one world.
type way struct {
	ended       bool     // a zone has refused the request
	status      int      // of the refusal
	refused     string   // the key that was refused; empty if the zone has none
	keys        []string // all that were met; only if somebody asks
	completions []*late.Completion
	slots       bool
}

// send sends the request through the routes in some worlds, in which it may wait if it is one.
func (x *exchange) send(worlds []*world) {
	x.worlds, x.ways = worlds, make([]way, len(worlds))
	r := x.make()
	over := func() {
		for i := range x.ways {
			x.complete(i)
		}
	}
	switch {
	case r == nil && x.isFirst():
		x.engine.unknown.invalid++
	case r == nil:
	case x.engine.separate:
		x.engine.Go(func() { x.walk(r) }, over)
	default:
		x.walk(r)
		over()
	}
}

// isFirst reports whether this is the walk that tells what is not known.
func (x *exchange) isFirst() bool { return x.worlds[0] == x.engine.worlds[0] }

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
	if t := &x.TLS; x.Scheme == "https" || x.Scheme == "" && len(x.server.TLSConnPolicies) > 0 {
		r.TLS = &tls.ConnectionState{
			HandshakeComplete: true, Version: t.Version, CipherSuite: t.CipherSuite, NegotiatedProtocol: t.Proto, ServerName: t.ServerName, DidResume: t.Resumed,
		}
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
	if x.failed != nil && x.isFirst() {
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
	e, status := x.engine, 0
	nth := e.index[module]
	h := e.config.Handlers[nth]
	failing := r.Context().Value(caddyhttp.ErrorCtxKey) != nil // error routes, to which a refused request comes
	for i, w := range x.worlds {
		at := &x.ways[i]
		if at.ended && !(failing && at.status != 0) {
			continue
		}
		e.deciding = x
		v := w.limiters[nth].Decide(r)
		e.tallies.decision(x, w, nth, v, e.Micros())
		if e.compares {
			at.meet(v)
		}
		at.slots = at.slots || slots(v)
		switch {
		case v.Err != nil:
			x.failed, at.ended, err = v.Err, true, v.Err
		case !v.Passes():
			answer := v.Answer(h.Status)
			if at.ended, status = true, answer.Status; at.status == 0 {
				at.status, at.refused = status, strings.Clone(answer.Key)
			}
		default:
			passes = true
		}
		if c := v.Release(); c != nil {
			at.completions = append(at.completions, c)
		}
	}
	switch {
	case passes || status != 0 && h.Respond.Final(r):
		return passes, nil
	case status == 0:
		return false, err
	case !e.needs.errors: // nobody asks for the error
		return false, nil
	}
	return false, caddyhttp.HandlerError{Err: errRefused, StatusCode: status}
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

// slots reports whether a verdict has charged slots that last until the request is over.
func slots(v *limiter.Verdict) bool {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Policy.Slots && e.Decision.Allowed {
			return true
		}
	}
	return false
}

// meet notes the keys of a verdict.
func (w *way) meet(v *limiter.Verdict) {
	for _, entries := range [][]limiter.Entry{v.Entries, v.Rejections} {
		for i := range entries {
			w.keys = append(w.keys, strings.Clone(entries[i].Key))
		}
	}
}

// complete gives back what a request has, and judges charges by its response, when it is over.
func (x *exchange) complete(i int) {
	e, at := x.engine, &x.ways[i]
	if x.worlds[i].try == nil && e.decided != nil {
		e.decided(x, at)
	}
	switch {
	case len(at.completions) == 0:
	case at.ended:
		x.settle(at, at.status)
	default:
		e.Plan(x.end, func() { x.settle(at, x.Status) })
		if at.slots && x.end > e.Micros() {
			e.renew(x.worlds[i], x.end)
		}
	}
}

// settle ends the completions of a request whose response had a status.
func (x *exchange) settle(at *way, status int) {
	header := x.responseHeader(status)
	for _, c := range at.completions {
		c.Judge(status, header)
		c.ReadCost(header)
		c.Release()
		c.End()
	}
	at.completions = nil
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

// CaddyModule implements [caddy.Module].
func (*guard) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: "http.matchers.replay"} }

// MatchWithError implements [caddyhttp.RequestMatcherWithError].
func (g *guard) MatchWithError(*http.Request) (bool, error) {
	if x := g.engine.deciding; g.last != x {
		why := g.lacking(x)
		if g.last, g.has = x, why == ""; !g.has && x.isFirst() {
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
