// Package routes looks at the handlers and matchers of a server once they are loaded: whether they may look at the decision on
// a request, trace it, set fields of its response, or catch its error.
package routes

import (
	"encoding/json"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Routes are the routes of a server. The server must not serve before all of them are loaded.
type Routes struct {
	server *caddyhttp.Server
	once   sync.Once
	seen   seen
}

// seen is what the routes have.
type seen struct {
	found    bool                 // whether an option contains observed
	opaque   bool                 // some handler or matcher may look at anything, and answer with anything
	traces   bool                 // some handler traces requests
	answers  bool                 // some handler may answer with any field
	catching bool                 // what is read is within a subroute with routes for errors
	catches  bool                 // such a subroute invokes a named route
	limiters int                  // how many handlers rate_limit there are
	names    map[string]bool      // of maps, in the form of http.Header's keys: those of fields are among them
	visited  map[pointer]struct{} // so that nothing is read twice
}

type pointer struct {
	to uintptr
	of reflect.Type
}

// Of returns the routes of a server, which may be nil: then nothing is known, and everything may be.
func Of(server *caddyhttp.Server) *Routes { return &Routes{server: server} }

// read reads the routes, the first time it is called.
func (r *Routes) read() *seen {
	r.once.Do(func() {
		s := &r.seen
		s.names, s.visited = make(map[string]bool), make(map[pointer]struct{})
		if s.opaque = r.server == nil || len(r.server.NamedRoutes) > 0; r.server == nil { // a named route may run several times for a request
			return
		}
		s.value(reflect.ValueOf(r.server.Routes))
		s.value(reflect.ValueOf(r.server.Errors))
		s.value(reflect.ValueOf(r.server.NamedRoutes))
		s.visited = nil
	})
	return &r.seen
}

// Trace reports whether a handler may trace requests.
func (r *Routes) Trace() bool {
	s := r.read()
	return s.opaque || s.traces
}

// Observe reports whether anything but a single handler rate_limit may look at its placeholders or variables.
func (r *Routes) Observe() bool {
	s := r.read()
	return s.opaque || s.found || s.limiters > 1
}

// Answer reports whether a handler may put values of its own into one of some fields of responses, beside those that are
// there. The fields have the form of http.Header's keys.
func (r *Routes) Answer(fields []string) bool {
	s := r.read()
	return s.opaque || s.answers || slices.ContainsFunc(fields, func(name string) bool { return s.names[name] })
}

// Catch reports whether routes for errors of a subroute may catch the error of a handler in a named route.
func (r *Routes) Catch() bool { return r.read().catches }

// declared are handlers of Caddy whose options say which fields they set in responses.
var declared = []string{
	"encode", "error", "file_server", "headers", "log_append", "map", "request_body", "rewrite", "static_response", "tracing", "vars",
}

// value reads a value and all in it that is exported.
func (s *seen) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		s.value(v.Elem())
		return
	case reflect.Pointer:
		at := pointer{v.Pointer(), v.Type()}
		if _, before := s.visited[at]; !before && !v.IsNil() {
			s.visited[at] = struct{}{}
			s.value(v.Elem())
		}
		return
	}
	if v.IsValid() && !s.enter(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.value(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if text, ok := v.Interface().(json.RawMessage); ok {
			s.option(string(text))
			return
		}
		for i := range v.Len() {
			s.value(v.Index(i))
		}
	case reflect.Map:
		for key, of := range v.Seq2() {
			if key.Kind() == reflect.String {
				s.name(key.String())
			}
			s.value(of)
		}
	case reflect.String:
		s.option(v.String())
	}
}

// observed is in the names of all placeholders and variables of a handler rate_limit.
const observed = "rate_limit"

func (s *seen) option(text string) { s.found = s.found || strings.Contains(text, observed) }

// name reads the name of something in a map, which may be a field of responses.
func (s *seen) name(name string) {
	s.option(name)
	s.answers = s.answers || strings.Contains(name, "{")
	s.names[textproto.CanonicalMIMEHeaderKey(name)] = true
}

// known are the packages whose modules look at nothing but their options.
var known = []string{"github.com/caddyserver/caddy/v2/", "github.com/seed-161337e5/caddyratelimit/"}

// enter reports whether to read what is in a value, and notes which module it is.
func (s *seen) enter(v reflect.Value) bool {
	of := v.Type().PkgPath() + "/"
	if v.CanAddr() {
		v = v.Addr()
	}
	module, is := v.Interface().(caddy.Module)
	if !slices.ContainsFunc(known, func(path string) bool { return strings.HasPrefix(of, path) }) {
		s.opaque = s.opaque || is
		return !is && reflect.Indirect(v).Kind() != reflect.Struct // but a map of fields, such as http.Header
	}
	if !is {
		return true
	}
	name, handles := strings.CutPrefix(string(module.CaddyModule().ID), "http.handlers.")
	switch {
	case !handles:
	case name == "rate_limit":
		s.limiters++
		return false
	case name == "templates", name == "file_server" && browses(reflect.Indirect(v)):
		s.opaque = true // the files decide what they look at
	case name == "tracing":
		s.traces = true
	case name == "invoke":
		s.catches = s.catches || s.catching
	case name == "subroute":
		if sub, ok := v.Interface().(*caddyhttp.Subroute); ok {
			s.subroute(sub)
		}
		return false
	case !slices.Contains(declared, name):
		s.answers = true
	}
	return true
}

// subroute reads a subroute. Its routes for errors catch nothing of each other.
func (s *seen) subroute(sub *caddyhttp.Subroute) {
	before := s.catching
	s.catching = before || sub.Errors != nil
	s.value(reflect.ValueOf(sub.Routes))
	s.catching = before
	s.value(reflect.ValueOf(sub.Errors))
}

// browses reports whether a file server lists folders by a template.
func browses(server reflect.Value) bool {
	browse := server.FieldByName("Browse")
	return !browse.IsValid() || !browse.IsNil()
}
