package walk

import (
	"cmp"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// EndsBefore returns the name of a handler that answers all requests before they come to another
// handler, wherever that is in the routes; empty if there is none for sure.
func EndsBefore(routes caddyhttp.RouteList, of caddyhttp.MiddlewareHandler) (name string) {
	name, _ = endsBefore(routes, of)
	return name
}

// endsBefore also reports whether the handler was found. If not, the name is that of a handler that
// answers all requests of these routes.
func endsBefore(routes caddyhttp.RouteList, of caddyhttp.MiddlewareHandler) (name string, found bool) {
	for _, route := range routes {
		ends := ""
		for _, h := range route.Handlers {
			if h == of {
				return cmp.Or(name, ends), true
			}
			if sub, ok := h.(*caddyhttp.Subroute); ok {
				within, found := endsBefore(sub.Routes, of)
				if found {
					return cmp.Or(name, ends, within), true
				}
				ends = cmp.Or(ends, within)
			} else if answersAll(h) {
				ends = cmp.Or(ends, moduleName(h))
			}
		}
		if len(route.MatcherSets) == 0 && route.Group == "" {
			name = cmp.Or(name, ends)
		}
	}
	return name, false
}

// answersAll reports whether no request passes a handler.
func answersAll(h caddyhttp.MiddlewareHandler) bool {
	if files, ok := h.(*fileserver.FileServer); ok {
		return !files.PassThru
	}
	if proxy, ok := h.(*reverseproxy.Handler); ok {
		return len(proxy.HandleResponse) == 0
	}
	name := moduleName(h)
	return known[name] == Ends || name == "error"
}
