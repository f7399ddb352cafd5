// Package routes reads the routes around a handler. It knows which placeholders their handlers set and see,
// and the fields of their answers.
package routes

import (
	"encoding/json"
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
	// Caddy's own, and vars whose names depend on the request.
	Foreign []string

	sets    map[string]bool
	met     []string        // zones that each request has met that comes to what is read next
	twice   map[string]bool // zones that a request meets in two handlers
	slashed map[string]bool // zones of handlers whose route matches the path /*

	opaque   bool              // some handler or matcher may see or answer anything
	answers  bool              // some handler may answer with any field
	limiters int               // how many handlers rate_limit there are
	options  []json.RawMessage // of the handlers and matchers
	answered []string          // fields of responses that handlers set
}

// Read reads the routes around the handler that is loaded in ctx. The routes around it are still
// there as JSON, and those behind it too.
func Read(ctx caddy.Context) *Routes {
	r := &Routes{sets: make(map[string]bool), twice: make(map[string]bool), slashed: make(map[string]bool)}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server == nil {
		return r
	}
	r.Known, r.opaque = true, len(server.NamedRoutes) > 0 // which may be run several times for a request
	for _, route := range server.NamedRoutes {
		r.met = nil
		r.route(route)
	}
	r.met = nil
	r.list(server.Routes)
	r.met = nil
	if server.Errors != nil {
		r.list(server.Errors.Routes)
	}
	return r
}

// ChargesTwice reports whether a request meets a zone in two handlers.
func (r *Routes) ChargesTwice(zone string) bool { return r.twice[zone] }

// MissesPathless reports whether the route of the handler with a zone matches /*, which a target without a path does not match.
func (r *Routes) MissesPathless(zone string) bool { return r.slashed[zone] }

// MaySet reports whether a handler may set a placeholder. It does so wherever that is not known.
func (r *Routes) MaySet(placeholder string) bool {
	return !r.Known || len(r.Foreign) > 0 || r.sets[placeholder]
}

func (r *Routes) list(routes caddyhttp.RouteList) {
	for i := range routes {
		r.route(&routes[i])
	}
}

// route reads a route. While its handlers are being loaded, or are still to be loaded, they are only
// there as JSON.
func (r *Routes) route(route *caddyhttp.Route) {
	if route == nil {
		return
	}
	met := len(r.met)
	slashed := r.rawMatchers(route.MatcherSetsRaw)
	slashed = r.matchers(route.MatcherSets) || slashed
	for _, handler := range route.Handlers {
		r.handler(handler)
	}
	for _, raw := range route.HandlersRaw {
		r.raw(raw, slashed)
	}
	if route.Terminal || route.Group != "" || len(route.MatcherSets)+len(route.MatcherSetsRaw) > 0 {
		r.met = r.met[:met]
	}
}

// meet notes that requests meet a zone.
func (r *Routes) meet(zone string) {
	r.twice[zone] = r.twice[zone] || slices.Contains(r.met, zone)
	r.met = append(r.met, zone)
}

// everyPath is the matcher path /*, which looks as if it matched all requests.
const everyPath = `["/*"]`

// matchers reads matchers that are loaded. It reports whether one is everyPath.
func (r *Routes) matchers(sets caddyhttp.MatcherSets) (every bool) {
	for _, set := range sets {
		for _, matcher := range set {
			if not, ok := matcher.(*caddyhttp.MatchNot); ok {
				r.matchers(not.MatcherSets)
			}
			r.foreign(matcher)
			config, _ := json.Marshal(matcher)
			r.option(config)
			_, isPath := matcher.(*caddyhttp.MatchPath)
			every = every || isPath && string(config) == everyPath
		}
	}
	return every
}

// rawMatchers reads matchers that are only there as JSON. It reports whether one is everyPath.
func (r *Routes) rawMatchers(sets caddyhttp.RawMatcherSets) (every bool) {
	for _, set := range sets {
		for name, config := range set {
			var not caddyhttp.RawMatcherSets
			if name == "not" && json.Unmarshal(config, &not) == nil {
				r.rawMatchers(not)
			}
			r.foreignID("http.matchers." + name)
			r.option(config)
			every = every || name == "path" && string(config) == everyPath
		}
	}
	return every
}

// handler reads a handler that is loaded.
func (r *Routes) handler(handler any) {
	if sub, ok := handler.(*caddyhttp.Subroute); ok {
		r.observe("subroute", nil)
		r.list(sub.Routes)
		if sub.Errors != nil {
			r.list(sub.Errors.Routes)
		}
		return
	}
	module, ok := handler.(caddy.Module)
	if r.foreign(handler) || !ok {
		r.opaque = true
		return
	}
	if field, ok := exported(handler, "HandleResponse").([]caddyhttp.ResponseHandler); ok {
		for _, response := range field {
			r.list(response.Routes)
		}
	}
	if providers := reflect.ValueOf(exported(handler, "Providers")); providers.Kind() == reflect.Map {
		for _, provider := range providers.Seq2() {
			r.foreign(provider.Interface())
		}
	}
	var config json.RawMessage
	name := module.CaddyModule().ID.Name()
	if slices.Contains(declared, name) && name != "rate_limit" {
		config, _ = json.Marshal(handler)
	}
	if zones := reflect.ValueOf(exported(handler, "RateLimits")); zones.Kind() == reflect.Map {
		for zone := range zones.Seq() {
			r.meet(zone.String())
		}
	}
	r.observe(name, config)
	r.settings(name, config)
}

// exported returns a field of a struct, nil if it has no such field.
func exported(owner any, field string) any {
	v := reflect.Indirect(reflect.ValueOf(owner))
	if v.Kind() != reflect.Struct {
		return nil
	}
	if f := v.FieldByName(field); f.IsValid() && f.CanInterface() {
		return f.Interface()
	}
	return nil
}

// raw reads a handler that is only there as JSON. Its route may match every path.
func (r *Routes) raw(config json.RawMessage, slashed bool) {
	var handler struct {
		Name string `json:"handler"`
	}
	if json.Unmarshal(config, &handler) != nil {
		return
	}
	r.foreignID("http.handlers." + handler.Name)
	r.observe(handler.Name, config)
	var inner struct { // each field is read if the others are not as expected, too
		Routes caddyhttp.RouteList `json:"routes"`
		Errors *struct {
			Routes caddyhttp.RouteList `json:"routes"`
		} `json:"errors"`
		HandleResponse []struct {
			Routes caddyhttp.RouteList `json:"routes"`
		} `json:"handle_response"`
		Providers map[string]json.RawMessage `json:"providers"`
		Zones     map[string]struct {
			Match  caddyhttp.RawMatcherSets `json:"match"`
			Exempt caddyhttp.RawMatcherSets `json:"exempt"`
			Block  caddyhttp.RawMatcherSets `json:"block"`
		} `json:"rate_limits"`
	}
	_ = json.Unmarshal(config, &inner)
	r.list(inner.Routes)
	if inner.Errors != nil {
		r.list(inner.Errors.Routes)
	}
	for _, response := range inner.HandleResponse {
		r.list(response.Routes)
	}
	switch handler.Name {
	case "authentication":
		for name := range inner.Providers {
			r.foreignID("http.authentication.providers." + name)
		}
	case "rate_limit":
		for name, zone := range inner.Zones {
			r.meet(name)
			r.slashed[name] = r.slashed[name] || slashed
			for _, sets := range []caddyhttp.RawMatcherSets{zone.Match, zone.Exempt, zone.Block} {
				r.rawMatchers(sets)
			}
		}
	}
	r.settings(handler.Name, config)
}

// settings reads what a handler of Caddy sets by its config.
func (r *Routes) settings(name string, config json.RawMessage) {
	switch name {
	case "vars":
		var vars map[string]any
		if json.Unmarshal(config, &vars) == nil {
			delete(vars, "handler") // names the module
			for key := range vars {
				r.sets["http.vars."+key] = true
				if strings.Contains(key, "{") {
					r.Foreign = append(r.Foreign, "http.handlers.vars") // which variable it sets depends on the request
				}
			}
		}
	case "map":
		var m struct {
			Destinations []string `json:"destinations"`
		}
		_ = json.Unmarshal(config, &m)
		for _, destination := range m.Destinations {
			r.sets[strings.Trim(destination, "{}")] = true
		}
	case "tracing":
		r.sets["http.vars.trace_id"], r.sets["http.vars.span_id"] = true, true
	}
}

// ours are the packages whose modules set no placeholders that are not known.
var ours = []string{"github.com/caddyserver/caddy/v2/", "github.com/seed-161337e5/caddyratelimit/"}

// foreign notes a module that is not Caddy's own, and reports whether it is not.
func (r *Routes) foreign(module any) bool {
	t := reflect.TypeOf(module)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return false
	}
	if slices.ContainsFunc(ours, func(path string) bool { return strings.HasPrefix(t.PkgPath()+"/", path) }) {
		return false
	}
	id := t.String()
	if m, ok := module.(caddy.Module); ok {
		id = string(m.CaddyModule().ID)
	}
	r.Foreign = append(r.Foreign, id)
	return true
}

// foreignID notes a module by its ID, if it is not Caddy's own.
func (r *Routes) foreignID(id string) {
	if info, err := caddy.GetModule(id); err == nil {
		r.foreign(info.New())
	}
}
