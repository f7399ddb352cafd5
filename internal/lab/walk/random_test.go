package walk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/seed-161337e5/caddyratelimit/internal/testing/deep" // the seed of rapid
)

// object is one in JSON.
type object = map[string]any

// drawn draws a config and a request.
type drawn struct {
	*rapid.T
	marks int
}

func (d *drawn) of(words ...string) string { return rapid.SampledFrom(words).Draw(d.T, "word") }

func (d *drawn) odds(one int) bool { return rapid.IntRange(1, one).Draw(d.T, "odds") == 1 }

// routes draws a list of routes. Named routes from named on may be invoked there, so they come to an end.
func (d *drawn) routes(depth, named int) []object {
	all := make([]object, rapid.IntRange(0, 3).Draw(d.T, "routes"))
	for i := range all {
		all[i] = d.route(depth, named)
	}
	return all
}

func (d *drawn) route(depth, named int) object {
	route := object{"handle": d.handlers(depth, named)}
	for range rapid.IntRange(0, 2).Draw(d.T, "sets") {
		sets, _ := route["match"].([]object)
		route["match"] = append(sets, d.matchers())
	}
	if d.odds(3) {
		route["group"] = d.of("g", "h")
	}
	if d.odds(4) {
		route["terminal"] = true
	}
	return route
}

// matchers draws a set of matchers.
func (d *drawn) matchers() object {
	set := make(object)
	for range rapid.IntRange(1, 2).Draw(d.T, "matchers") {
		switch rapid.IntRange(0, 8).Draw(d.T, "matcher") {
		case 0:
			set["path"] = []string{d.of("/a*", "/b", "*/c", "/new", "/{http.vars.v}")}
		case 1:
			set["method"] = []string{d.of("GET", "POST")}
		case 2:
			set["header"] = object{"X-A": []string{d.of("1", "2", "*")}}
		case 3:
			set["vars"] = object{"v": []string{d.of("a", "b")}}
		case 4:
			set["path_regexp"] = object{"name": "re", "pattern": "^/([a-z])"}
		case 5:
			set["not"] = []object{d.matchers()}
		case 6:
			set["host"] = []string{d.of("a.test", "b.test")}
		case 7:
			set["expression"] = d.of("{http.vars.v} == 'a'", "{http.request.method} == 'POST'", "int({http.vars.v}) > 1")
		case 8:
			set["protocol"] = d.of("http", "https")
		}
	}
	return set
}

func (d *drawn) handlers(depth, named int) []object {
	all := make([]object, rapid.IntRange(1, 3).Draw(d.T, "handlers"))
	for i := range all {
		all[i] = d.handler(depth, named)
	}
	return all
}

// names are those of named routes.
var names = []string{"one", "two", "three"}

func (d *drawn) handler(depth, named int) object {
	kind := rapid.IntRange(0, 12).Draw(d.T, "handler")
	switch {
	case kind <= 1 && depth > 0:
		sub := object{"handler": "subroute", "routes": d.routes(depth-1, named)}
		if d.odds(2) {
			sub["errors"] = object{"routes": d.routes(depth-1, named)}
		}
		return sub
	case kind == 2 && named < len(names):
		return object{"handler": "invoke", "name": d.of(names[named:]...)}
	case kind == 3:
		return object{"handler": "vars", "v": d.of("a", "b", "{http.regexp.re.1}", "{http.request.header.X-A}")}
	case kind == 4:
		return d.rewrite()
	case kind == 5:
		return object{
			"handler": "map", "source": d.of("{http.request.uri.path}", "{http.vars.v}"), "destinations": []string{"{m}"},
			"mappings": []object{{"input": "/b", "outputs": []string{"mapped"}}, {"input_regexp": "^/?(.)", "outputs": []string{"re ${1}"}}}, "defaults": []string{"none"},
		}
	case kind == 6:
		return object{"handler": "headers", "request": object{"set": object{"X-A": []string{d.of("1", "2")}}}}
	case kind == 7 && d.odds(2):
		return object{"handler": "error", "status_code": d.of("404", "503", "no number"), "error": "an error"}
	case kind == 8 && d.odds(3):
		return object{"handler": "static_response", "status_code": 204}
	}
	d.marks++
	m := object{"handler": "mark", "text": fmt.Sprintf("%d v={http.vars.v} m={m} re={http.regexp.re.1} a={http.request.header.X-A} e={http.error.status_code}", d.marks)}
	switch {
	case d.odds(6):
		m["status"] = rapid.SampledFrom([]int{429, 403, 503}).Draw(d.T, "status")
	case d.odds(10):
		m["ends"] = true
	}
	return m
}

func (d *drawn) rewrite() object {
	r := object{"handler": "rewrite"}
	switch rapid.IntRange(0, 4).Draw(d.T, "rewrite") {
	case 0:
		r["uri"] = d.of("/new", "/a?x={http.vars.v}", "?only=query", "{http.request.uri.path}/c")
	case 1:
		r["strip_path_prefix"] = "/a"
	case 2:
		r["method"] = d.of("POST", "get")
	case 3:
		r["uri_substring"] = []object{{"find": "a", "replace": "b"}}
	case 4:
		r["path_regexp"] = []object{{"find": "/+", "replace": "/"}}
	}
	return r
}

// TestRandomConfigs: whatever the routes are, a walk comes to the same handlers in the same order as the server, with
// the same request, variables and errors.
func TestRandomConfigs(t *testing.T) {
	met, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawn{T: rt}
		s := object{"listen": []string{"127.0.0.1:0"}, "automatic_https": object{"disable": true}, "routes": d.routes(3, 0)}
		if d.odds(2) {
			s["errors"] = object{"routes": d.routes(2, 0)}
		}
		named := make(object)
		for i, name := range names {
			named[name] = d.route(1, i+1)
		}
		s["named_routes"] = named
		config, err := json.MarshalIndent(object{"apps": object{"http": object{"servers": object{"s": s}}}}, "", " ")
		if err != nil {
			rt.Fatal(err)
		}
		server := load(rt, config, "")
		for range 4 {
			method, path, header := d.of("GET", "POST"), d.of("/a", "/b", "/a/c", "//a/../b", "/%61?q"), d.of("1", "2")
			request := get(method, "http://"+d.of("a.test", "b.test")+path, "X-A", header)
			told, w := compare(rt, server, request)
			met += len(w.marks)
			if w.status != 0 || strings.Contains(strings.Join(w.marks, ""), "e=4") {
				refused++
			}
			if rt.Failed() {
				rt.Fatalf("%s %s, X-A %s\n%s\n%s", method, path, header, config, strings.Join(told.lines, "\n"))
			}
		}
	})
	if met == 0 || refused == 0 {
		t.Errorf("%d marks, %d requests refused: this test says nothing", met, refused)
	}
}
