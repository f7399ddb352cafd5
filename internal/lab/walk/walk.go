// Package walk sends a request through the routes of a server without effects. Matchers run, and also
// handlers that only change the request. Nothing is sent, written, logged or counted.
// A handler that would answer stops the walk. One that would send something, or that is not known, is not
// run, and the report says what was assumed. So the request path has no switch for it.
package walk

import (
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// Visitor learns what a request meets on its way, and serves it in place of handlers.
type Visitor interface {
	// Decides reports whether the visitor decides how a request goes on at a handler.
	Decides(handler caddyhttp.MiddlewareHandler) bool

	// Serve serves a request at such a handler, instead of the handler.
	Serve(handler caddyhttp.MiddlewareHandler, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error

	// Answer answers a request: instead of a handler that ends it, or behind the last route, where the handler is nil.
	// In error routes the context has the error.
	Answer(handler caddyhttp.MiddlewareHandler, w http.ResponseWriter, r *http.Request) error

	// Meets reports a step on the way, before what is behind it: a handler, or a route that the request takes, or does not
	// take although a handler in it decides.
	Meets(adminapi.Step)
}

// What a walk makes of a handler.
const (
	Ran     = "ran"     // it has changed the request, or left it as it is
	Decides = "decides" // the visitor decides
	Passed  = "passed"  // it does not matter to the request
	Assumed = "assumed" // it was not run, and what it does was assumed
	Ends    = "ends"    // it answers
)

// Walk sends a request through the routes of its server, and an error through those for errors. The request must be
// prepared, see [caddyhttp.PrepareRequest], and must not be used afterwards. The error is that which no error route has
// handled. A detailed walk also reports routes, handlers that decide, and what handlers change. Describing these takes
// longer than the walk itself.
func Walk(v Visitor, server *caddyhttp.Server, rw http.ResponseWriter, r *http.Request, detailed bool) (err error) {
	w := &walker{visitor: v, server: server, detailed: detailed}
	w.end = caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error { return v.Answer(nil, rw, r) })
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	err = w.list(server.Routes, 0, "", rw, r, w.end)
	if err == nil || server.Errors == nil || len(server.Errors.Routes) == 0 {
		return err
	}
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		r.Method, r.RemoteAddr, r.RequestURI = original.Method, original.RemoteAddr, original.RequestURI
		url := *original.URL
		r.URL = &url
	}
	return w.list(server.Errors.Routes, 0, "error ", rw, server.Errors.WithError(r, err), w.end)
}

type walker struct {
	visitor  Visitor
	detailed bool
	server   *caddyhttp.Server
	end      caddyhttp.Handler // behind the last route
	invoked  int               // how many named routes were invoked
}

// maxInvoked bounds named routes that invoke each other.
const maxInvoked = 200

// list is [caddyhttp.RouteList.Compile], from route i of a list on. The prefix is for the numbers of the routes.
func (w *walker) list(routes caddyhttp.RouteList, i int, prefix string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if i == len(routes) {
		return next.ServeHTTP(rw, r)
	}
	behind := caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
		return w.list(routes, i+1, prefix, rw, r, next)
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
		if w.detailed && w.decidesIn(route.Handlers) {
			w.visitor.Meets(adminapi.Step{
				Route: path, Match: Describe(route.MatcherSets), Misses: Misses(route.MatcherSets, r, caddyhttp.MatcherSets.AnyMatchWithError),
			})
		}
		return next.ServeHTTP(rw, r)
	}
	if route.Group != "" {
		groups(r)[route.Group] = struct{}{}
	}
	if w.detailed {
		w.visitor.Meets(adminapi.Step{Route: path, Match: Describe(route.MatcherSets), Taken: true})
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
		if w.detailed {
			w.meets(moduleName(h), Decides, "")
		}
		return w.visitor.Serve(h, rw, r, next)
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
		w.meets(name, Ends, "")
		return w.visitor.Answer(h, rw, r)
	case Passed:
		w.meets(name, Passed, "")
	default:
		w.meets(name, Assumed, "is not run; assumed that it passes the request on unchanged")
	}
	return next.ServeHTTP(rw, r)
}

func (w *walker) meets(handler, effect, note string) {
	w.visitor.Meets(adminapi.Step{Handler: handler, Effect: effect, Note: note})
}

// decides reports whether the visitor decides how a request goes on at a handler. It is not asked about a handler that is no
// pointer: ours are pointers, and others may be values that cannot be keys of its map.
func (w *walker) decides(h caddyhttp.MiddlewareHandler) bool {
	return reflect.TypeOf(h).Kind() == reflect.Pointer && w.visitor.Decides(h)
}

// known says what to make of the handlers of Caddy that need no care.
var known = map[string]string{
	"vars": Ran, "map": Ran, "rewrite": Ran, "headers": Ran, "request_body": Ran, "error": Ran,
	"encode": Passed, "templates": Passed, "push": Passed, "tracing": Passed, "log_append": Passed,
	"timeouts": Passed, "copy_response_headers": Passed, "adaptive_concurrency": Passed,
	"static_response": Ends, "copy_response": Ends, "metrics": Ends, "file_server": Ends,
}

// run runs a handler that has no other effect than on the request.
func (w *walker) run(h caddyhttp.MiddlewareHandler, name string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	method, uri, passes := r.Method, r.RequestURI, false
	err := h.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
		note := ""
		if w.detailed && (r.Method != method || r.RequestURI != uri) {
			note = "the request is now " + r.Method + " " + r.RequestURI
		}
		w.meets(name, Ran, note)
		passes = true
		return next.ServeHTTP(rw, r)
	}))
	if !passes {
		w.meets(name, Ends, "")
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
