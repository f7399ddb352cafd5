// Package routes looks at the handlers and matchers of a server once they are loaded: whether they may look at the decision on
// a request.
package routes

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Routes are the routes of a server. The server must not serve before all of them are loaded.
type Routes struct {
	server   *caddyhttp.Server
	once     sync.Once
	observes bool         // something may look at decisions
	limiters int          // how many handlers rate_limit there are
	visited  map[any]bool // pointers, so that nothing is read twice
}

// Of returns the routes of a server, which may be nil: then nothing is known.
func Of(server *caddyhttp.Server) *Routes { return &Routes{server: server} }

// Observe reports whether anything but a single handler rate_limit may look at its placeholders or variables.
func (s *Routes) Observe() bool {
	s.once.Do(func() {
		if s.server == nil || len(s.server.NamedRoutes) > 0 { // a named route may run several times for a request
			s.observes = true
			return
		}
		s.visited = make(map[any]bool)
		s.value(reflect.ValueOf(s.server.Routes))
		s.value(reflect.ValueOf(s.server.Errors))
		s.observes, s.visited = s.observes || s.limiters > 1, nil
	})
	return s.observes
}

// value reads a value and all in it that is exported.
func (s *Routes) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		s.value(v.Elem())
		return
	case reflect.Pointer:
		if at := v.Interface(); !v.IsNil() && !s.visited[at] {
			s.visited[at] = true
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
	case reflect.Slice, reflect.Array, reflect.Map:
		if text, ok := v.Interface().(json.RawMessage); ok {
			s.option(string(text))
			return
		}
		for key, of := range v.Seq2() { // the keys of a slice say nothing
			s.value(key)
			s.value(of)
		}
	case reflect.String:
		s.option(v.String())
	}
}

// observed is in the names of all placeholders and variables of a handler rate_limit.
const observed = "rate_limit"

func (s *Routes) option(text string) { s.observes = s.observes || strings.Contains(text, observed) }

// known are the packages whose modules look at nothing but their options.
var known = []string{"github.com/caddyserver/caddy/v2/", "github.com/seed-161337e5/caddyratelimit/"}

// enter reports whether to read what is in a value, and notes which module it is.
func (s *Routes) enter(v reflect.Value) bool {
	of := v.Type().PkgPath() + "/"
	if v.CanAddr() {
		v = v.Addr()
	}
	module, is := v.Interface().(caddy.Module)
	if !slices.ContainsFunc(known, func(path string) bool { return strings.HasPrefix(of, path) }) {
		s.observes = s.observes || is
		return !is && reflect.Indirect(v).Kind() != reflect.Struct // but a map of fields, such as http.Header
	}
	if !is {
		return true
	}
	switch module.CaddyModule().ID {
	case "http.handlers.rate_limit":
		s.limiters++
		return false
	case "http.handlers.templates":
		s.observes = true // the files decide what they look at
	case "http.handlers.file_server":
		browse := reflect.Indirect(v).FieldByName("Browse")
		s.observes = s.observes || !browse.IsValid() || !browse.IsNil() // it lists folders by a template
	}
	return true
}
