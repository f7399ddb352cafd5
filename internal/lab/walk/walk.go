// Package walk sends a request through the routes of a server without effects. Matchers run, and also
// handlers that only change the request. Nothing is sent, written, logged or counted.
// A handler that would answer stops the walk. One that would send something, or that is not known, is not
// run, and the report says what was assumed. So the request path has no switch for it.
package walk

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime/debug"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// Visitor learns what a request meets on its way.
type Visitor interface {
	// Decides reports whether the visitor decides how a request goes on at a handler.
	Decides(handler caddyhttp.MiddlewareHandler) bool

	// Decide decides at such a handler. If passes is false, the request ends there; an error is for
	// error routes.
	Decide(handler caddyhttp.MiddlewareHandler, r *http.Request) (passes bool, err error)

	// Handler reports a handler that the request meets, before what is behind it. It gets handlers
	// that decide only if the visitor is a [RouteVisitor].
	Handler(Handler)
}

// RouteVisitor is a [Visitor] that also gets routes and what handlers change. Describing
// these takes longer than the walk itself.
type RouteVisitor interface {
	Visitor

	// Route reports a route that the request takes, or that it does not take although a handler in
	// it decides.
	Route(Route)
}

// ServingVisitor is a [Visitor] that answers requests, and so gets their responses. See [Serve].
type ServingVisitor interface {
	Visitor

	// Serve serves a request at a handler that decides, instead of Decide.
	Serve(handler caddyhttp.MiddlewareHandler, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error

	// Answer answers a request that no error has ended: instead of a handler that ends it, or behind the last route,
	// where the handler is nil.
	Answer(handler caddyhttp.MiddlewareHandler, w http.ResponseWriter, r *http.Request) error
}

// Route is a route that a request has come to.
type Route struct {
	Path     string // the numbers of the route and of those around it: "2.1"
	Matchers string // in words; empty for all requests
	Taken    bool

	// Misses are the matchers that do not match, one of each set.
	Misses []string
}

// Handler is a handler that a request meets.
type Handler struct {
	Name   string // of the module
	Effect Effect
	Note   string
}

// Effect is what a walk makes of a handler.
type Effect string

const (
	Ran     Effect = "ran"     // it has changed the request, or left it as it is
	Decides Effect = "decides" // the visitor decides
	Passed  Effect = "passed"  // it does not matter to the request
	Assumed Effect = "assumed" // it was not run, and what it does was assumed
	Ends    Effect = "ends"    // it answers
)

// Walk sends a request through the routes of its server. The request must be prepared, see
// [caddyhttp.PrepareRequest], and must not be used afterwards. The error is that which no error route
// has handled.
func Walk(v Visitor, server *caddyhttp.Server, r *http.Request) (err error) {
	return walk(&walker{visitor: v, server: server, end: nothing}, httptest.NewRecorder(), r)
}

// Serve is [Walk] for a visitor that answers requests. Handlers that set headers of the response do so, and a
// response that the config itself has is written to rw.
func Serve(v ServingVisitor, server *caddyhttp.Server, rw http.ResponseWriter, r *http.Request) error {
	w := &walker{visitor: v, server: server, serving: v}
	w.end = caddyhttp.HandlerFunc(w.answerAtEnd)
	return walk(w, rw, r)
}

// answerAtEnd is Caddy's handler behind the last route, for errors and for other requests.
func (w *walker) answerAtEnd(rw http.ResponseWriter, r *http.Request) error {
	failed, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	if failed == nil {
		return w.serving.Answer(nil, rw, r)
	}
	status := http.StatusInternalServerError
	if e := (caddyhttp.HandlerError{}); errors.As(failed, &e) {
		status = e.StatusCode
	}
	rw.WriteHeader(status)
	return nil
}

// walk sends a request through the routes of a server, and an error through those for errors.
func walk(w *walker, rw http.ResponseWriter, r *http.Request) (err error) {
	server := w.server
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	w.routes, _ = w.visitor.(RouteVisitor)
	err = w.list(server.Routes, "", rw, r, w.end)
	if err == nil || server.Errors == nil || len(server.Errors.Routes) == 0 {
		return err
	}
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		r.Method, r.RemoteAddr, r.RequestURI = original.Method, original.RemoteAddr, original.RequestURI
		url := *original.URL
		r.URL = &url
	}
	return w.list(server.Errors.Routes, "error ", rw, server.Errors.WithError(r, err), w.end)
}

// nothing is behind the last route.
var nothing = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })

type walker struct {
	visitor Visitor
	routes  RouteVisitor   // nil if the visitor does not get routes
	serving ServingVisitor // nil if the visitor does not answer
	server  *caddyhttp.Server
	end     caddyhttp.Handler // behind the last route
	invoked int               // how many named routes were invoked
}

// maxInvoked bounds named routes that invoke each other.
const maxInvoked = 200

// list is [caddyhttp.RouteList.Compile]. The prefix is for the numbers of the routes.
func (w *walker) list(routes caddyhttp.RouteList, prefix string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return w.route(routes, 0, prefix, rw, r, next)
}

// route sends the request through route i of a list, and those behind it.
func (w *walker) route(routes caddyhttp.RouteList, i int, prefix string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if i == len(routes) {
		return next.ServeHTTP(rw, r)
	}
	behind := caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
		return w.route(routes, i+1, prefix, rw, r, next)
	})
	return w.one(&routes[i], prefix+strconv.Itoa(i+1), rw, r, behind)
}

// groups are the groups of which a request has taken a route.
func groups(r *http.Request) map[string]struct{} {
	g, _ := r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{})
	return g
}

// one is [caddyhttp.Route.Compile].
func (w *walker) one(route *caddyhttp.Route, path string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, taken := groups(r)[route.Group]; taken && route.Group != "" {
		return next.ServeHTTP(rw, r)
	}
	taken, err := route.MatcherSets.AnyMatchWithError(r)
	if err != nil {
		return err
	}
	if !taken {
		if w.routes != nil && w.decidesIn(route.Handlers) {
			w.routes.Route(Route{Path: path, Matchers: Describe(route.MatcherSets), Misses: Misses(route.MatcherSets, r, caddyhttp.MatcherSets.AnyMatchWithError)})
		}
		return next.ServeHTTP(rw, r)
	}
	if route.Group != "" {
		groups(r)[route.Group] = struct{}{}
	}
	if w.routes != nil {
		w.routes.Route(Route{Path: path, Matchers: Describe(route.MatcherSets), Taken: true})
	}
	if route.Terminal {
		next = w.end
	}
	return w.handlers(route.Handlers, path, rw, r, next)
}

// handlers sends the request through the handlers of a route.
func (w *walker) handlers(handlers []caddyhttp.MiddlewareHandler, path string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if len(handlers) == 0 {
		return next.ServeHTTP(rw, r)
	}
	behind := caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
		return w.handlers(handlers[1:], path, rw, r, next)
	})
	return w.handler(handlers[0], path, rw, r, behind)
}

// handler sends the request through one handler.
func (w *walker) handler(h caddyhttp.MiddlewareHandler, path string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if redirect, ok := h.(caddyhttp.StaticResponse); ok { // as Caddy's own redirects to HTTPS are
		h = &redirect
	}
	if w.decides(h) {
		if w.routes != nil {
			w.visitor.Handler(Handler{Name: moduleName(h), Effect: Decides})
		}
		if w.serving != nil {
			return w.serving.Serve(h, rw, r, next)
		}
		if passes, err := w.visitor.Decide(h, r); err != nil || !passes {
			return err
		}
		return next.ServeHTTP(rw, r)
	}
	switch h := h.(type) {
	case *caddyhttp.Subroute:
		return w.subroute(h, path, rw, r, next)
	case *caddyhttp.Invoke:
		return w.invoke(h, rw, r, next)
	case *caddyauth.Authentication:
		return w.authenticate(h, rw, r, next)
	case *reverseproxy.Handler:
		return w.proxy(h, path, rw, r, next)
	}
	name := moduleName(h)
	switch known[name] {
	case Ran:
		return w.run(h, name, rw, r, next)
	case Ends:
		w.visitor.Handler(Handler{Name: name, Effect: Ends})
		return w.answer(h, rw, r)
	case Passed:
		w.visitor.Handler(Handler{Name: name, Effect: Passed})
	default:
		w.visitor.Handler(Handler{Name: name, Effect: Assumed, Note: "is not run; assumed that it passes the request on unchanged"})
	}
	return next.ServeHTTP(rw, r)
}

// decides reports whether the visitor decides how a request goes on at a handler. It is not asked about a handler that is no
// pointer: ours are pointers, and others may be values that cannot be keys of its map.
func (w *walker) decides(h caddyhttp.MiddlewareHandler) bool {
	return reflect.TypeOf(h).Kind() == reflect.Pointer && w.visitor.Decides(h)
}

// answer answers a request at a handler that ends it.
func (w *walker) answer(h caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request) error {
	failed := r.Context().Value(caddyhttp.ErrorCtxKey) != nil
	switch written, ok := h.(*caddyhttp.StaticResponse); {
	case w.serving == nil:
		return nil
	case failed && ok:
		return written.ServeHTTP(rw, r, nothing)
	case failed:
		return w.answerAtEnd(rw, r)
	}
	return w.serving.Answer(h, rw, r)
}

// known says what to make of the handlers of Caddy that need no care.
var known = map[string]Effect{
	"vars": Ran, "map": Ran, "rewrite": Ran, "headers": Ran, "request_body": Ran, "error": Ran,
	"encode": Passed, "templates": Passed, "push": Passed, "tracing": Passed, "log_append": Passed,
	"timeouts": Passed, "copy_response_headers": Passed, "adaptive_concurrency": Passed,
	"static_response": Ends, "copy_response": Ends, "metrics": Ends, "file_server": Ends,
}

// run runs a handler that has no other effect than on the request.
func (w *walker) run(h caddyhttp.MiddlewareHandler, name string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	method, uri, passes := r.Method, r.RequestURI, false
	err := h.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
		seen := Handler{Name: name, Effect: Ran}
		if w.routes != nil && (r.Method != method || r.RequestURI != uri) {
			seen.Note = "the request is now " + r.Method + " " + r.RequestURI
		}
		w.visitor.Handler(seen)
		passes = true
		return next.ServeHTTP(rw, r)
	}))
	if !passes {
		w.visitor.Handler(Handler{Name: name, Effect: Ends})
	}
	return err
}

// moduleName returns the name of a handler's module.
func moduleName(h caddyhttp.MiddlewareHandler) string {
	if m, ok := h.(caddy.Module); ok {
		return m.CaddyModule().ID.Name()
	}
	return fmt.Sprintf("%T", h)
}
