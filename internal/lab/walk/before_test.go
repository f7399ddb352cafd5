package walk_test

import (
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
)

// TestEndsBefore: the handler that answers all requests before another one is found, and none if some may come by.
func TestEndsBefore(t *testing.T) {
	for name, c := range map[string]struct{ caddyfile, want string }{
		"nothing":                       {"mark here", ""},
		"an answer":                     {"route {\nrespond ok\nmark here\n}", "static_response"},
		"an answer to some":             {"route {\nrespond /a ok\nmark here\n}", ""},
		"an answer in the same route":   {"route {\nroute /a {\nrespond ok\nmark here\n}\n}", "static_response"},
		"one of a group":                {"handle /a {\nrewrite * /b\n}\nhandle {\nrespond ok\n}\nmark here", ""},
		"a file server that passes":     {"route {\nfile_server {\npass_thru\n}\nmark here\n}", ""},
		"a proxy":                       {"route {\nreverse_proxy 127.0.0.1:9\nmark here\n}", "reverse_proxy"},
		"a proxy that may pass on":      {"route {\nforward_auth 127.0.0.1:9 {\nuri /\n}\nmark here\n}", ""},
		"what only changes the request": {"route {\nrewrite * /x\nvars a b\nmark here\n}", ""},
		"the first of several is named": {"route {\nerror 418\nrespond ok\nmark here\n}", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			server := load(t, adapt(t, "http:// {\n"+c.caddyfile+"\n}"), "")
			of := find(server.Routes)
			if of == nil {
				t.Fatal("the config has no mark")
			}
			if got := walk.EndsBefore(server.Routes, of); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// find returns the mark in routes.
func find(routes caddyhttp.RouteList) caddyhttp.MiddlewareHandler {
	for _, route := range routes {
		for _, h := range route.Handlers {
			if _, ok := h.(*mark); ok {
				return h
			}
			if sub, ok := h.(*caddyhttp.Subroute); ok {
				if found := find(sub.Routes); found != nil {
					return found
				}
			}
		}
	}
	return nil
}
