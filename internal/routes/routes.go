// Package routes reads the routes around a handler: which placeholders their handlers set, and
// whether one of them authenticates users before it.
package routes

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Routes are the routes of the server that a handler is loaded for, and of the subroutes around it.
type Routes struct {
	// Known says that the routes could be read. Without a server, as in tests, they cannot.
	Known bool

	// Foreign are the modules of which it is not known what they set, by ID: those that are not
	// Caddy's own, and those with routes in them that cannot be read.
	Foreign []string

	// Authenticates says that some handler authenticates users, and AuthenticatesBefore that such a
	// handler is before this one.
	Authenticates, AuthenticatesBefore bool

	sets map[string]bool
}

// Read reads the routes around the handler that is loaded in ctx.
func Read(ctx caddy.Context) *Routes {
	r := &Routes{sets: make(map[string]bool)}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server == nil {
		return r
	}
	r.Known = true
	r.list(server.Routes)
	for _, route := range server.NamedRoutes {
		r.route(route)
	}
	if server.Errors != nil {
		r.list(server.Errors.Routes)
	}
	for _, module := range ctx.Modules() {
		if sub, ok := module.(*caddyhttp.Subroute); ok {
			r.subroute(sub)
		}
	}
	return r
}

// Sets reports whether a handler sets a placeholder, as far as is known.
func (r *Routes) Sets(placeholder string) bool { return r.sets[placeholder] }

func (r *Routes) list(routes caddyhttp.RouteList) {
	for i := range routes {
		r.route(&routes[i])
	}
}

func (r *Routes) subroute(sub *caddyhttp.Subroute) {
	r.list(sub.Routes)
	if sub.Errors != nil {
		r.list(sub.Errors.Routes)
	}
}

// route reads a route. While its handlers are being loaded, or are still to be loaded, they are only
// there as JSON.
func (r *Routes) route(route *caddyhttp.Route) {
	for _, set := range route.MatcherSets {
		for _, matcher := range set {
			r.foreign(matcher)
		}
	}
	for _, handler := range route.Handlers {
		r.handler(handler)
	}
	authenticates := false
	for _, raw := range route.HandlersRaw {
		switch name := r.raw(raw); name {
		case "authentication":
			authenticates = true
		case "rate_limit":
			// If there are several, some of them are behind, and no warning is better than a wrong one.
			r.AuthenticatesBefore = r.AuthenticatesBefore || authenticates
		}
	}
}

// handler reads a handler that is loaded, which is therefore before this one.
func (r *Routes) handler(handler any) {
	if sub, ok := handler.(*caddyhttp.Subroute); ok {
		r.subroute(sub)
		return
	}
	if r.foreign(handler) {
		return
	}
	config, err := json.Marshal(handler)
	if err != nil {
		return
	}
	module, _ := handler.(caddy.Module)
	if module == nil {
		return
	}
	switch name := module.CaddyModule().ID.Name(); name {
	case "authentication":
		r.Authenticates, r.AuthenticatesBefore = true, true
	case "reverse_proxy", "intercept":
		if strings.Contains(string(config), `"handle_response"`) { // the routes in it are not in the JSON any more
			r.Foreign = append(r.Foreign, string(module.CaddyModule().ID))
		}
	default:
		r.settings(name, config)
	}
}

// raw reads a handler that is only there as JSON, and returns its name.
func (r *Routes) raw(config json.RawMessage) string {
	var handler struct {
		Name   string              `json:"handler"`
		Routes caddyhttp.RouteList `json:"routes"`
		Errors *struct {
			Routes caddyhttp.RouteList `json:"routes"`
		} `json:"errors"`
		HandleResponse []struct {
			Routes caddyhttp.RouteList `json:"routes"`
		} `json:"handle_response"`
	}
	if json.Unmarshal(config, &handler) != nil {
		return ""
	}
	r.list(handler.Routes)
	if handler.Errors != nil {
		r.list(handler.Errors.Routes)
	}
	for _, response := range handler.HandleResponse {
		r.list(response.Routes)
	}
	if handler.Name == "authentication" {
		r.Authenticates = true
	}
	if info, err := caddy.GetModule("http.handlers." + handler.Name); err == nil {
		r.foreign(info.New())
	}
	r.settings(handler.Name, config)
	return handler.Name
}

// settings reads the placeholders that a handler of Caddy sets by its config.
func (r *Routes) settings(name string, config json.RawMessage) {
	switch name {
	case "vars":
		var vars map[string]any
		if json.Unmarshal(config, &vars) == nil {
			for key := range vars {
				r.sets["http.vars."+key] = true
				r.sets[key] = r.sets[key] || key == "http.auth.user.id" // which this handler may set
				if strings.Contains(key, "{") {
					r.Foreign = append(r.Foreign, "http.handlers.vars") // which variable it sets depends on the request
				}
			}
		}
	case "map":
		var mapping struct {
			Destinations []string `json:"destinations"`
		}
		if json.Unmarshal(config, &mapping) == nil {
			for _, destination := range mapping.Destinations {
				r.sets[strings.Trim(destination, "{}")] = true
			}
		}
	case "tracing":
		r.sets["http.vars.trace_id"], r.sets["http.vars.span_id"] = true, true
	}
}

// ours are the packages whose modules set no placeholders that are not known.
var ours = []string{"github.com/caddyserver/caddy/v2/", "github.com/seed-161337e5/caddyratelimit"}

// foreign notes a module that is not Caddy's own, and reports whether it is not.
func (r *Routes) foreign(module any) bool {
	t := reflect.TypeOf(module)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return false
	}
	for _, path := range ours {
		if strings.HasPrefix(t.PkgPath()+"/", path) {
			return false
		}
	}
	id := t.String()
	if m, ok := module.(caddy.Module); ok {
		id = string(m.CaddyModule().ID)
	}
	r.Foreign = append(r.Foreign, id)
	return true
}

// All returns the placeholders that handlers set.
func (r *Routes) All() []string { return slices.Sorted(maps.Keys(r.sets)) }
