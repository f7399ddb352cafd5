package walk

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// This file has the handlers that have routes of their own, or that need care.

// subroute is [caddyhttp.Subroute.ServeHTTP].
func (w *walker) subroute(h *caddyhttp.Subroute, path string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	err := w.list(h.Routes, 0, path+".", rw, r, next)
	if err == nil || h.Errors == nil {
		return err
	}
	return w.list(h.Errors.Routes, 0, path+".error ", rw, h.Errors.WithError(r, err), next)
}

// invoke is [caddyhttp.Invoke.ServeHTTP].
func (w *walker) invoke(h *caddyhttp.Invoke, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	route, ok := w.server.NamedRoutes[h.Name]
	if !ok {
		return fmt.Errorf("invoke: route '%s' not found", h.Name)
	}
	if w.invoked++; w.invoked > maxInvoked {
		return errors.New("the named routes invoke each other without end")
	}
	return w.one(route, h.Name, rw, r, next)
}

// authenticate runs basic_auth, which compares passwords and nothing else. Other authentication is
// not run: it may ask a server.
func (w *walker) authenticate(h *caddyauth.Authentication, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	others := []string{}
	for name, provider := range h.Providers {
		switch provider.(type) {
		case caddyauth.HTTPBasicAuth, *caddyauth.HTTPBasicAuth:
		default:
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return w.run(h, "authentication", rw, r, next)
	}
	slices.Sort(others)
	w.meets("authentication", Assumed, fmt.Sprintf(
		"is not run (%s); assumed that it accepts the request, with the {http.auth.user.*} that are given", strings.Join(others, ", ")))
	return next.ServeHTTP(rw, r)
}

// proxy asks no upstream. With handle_response a proxy may pass the request on, as forward_auth does:
// that is assumed where it would happen with status 200 and no headers.
func (w *walker) proxy(h *reverseproxy.Handler, path string, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	for _, response := range h.HandleResponse {
		if len(response.Routes) == 0 || response.Match != nil && !response.Match.Match(http.StatusOK, http.Header{}) {
			continue
		}
		w.meets("reverse_proxy", Assumed, "is not asked; assumed that it answers 200, with the {rp.header.*} that are given")
		return w.list(response.Routes, 0, path+".response ", rw, r, next)
	}
	w.meets("reverse_proxy", Ends, "is not asked")
	return w.visitor.Answer(h, rw, r)
}

// decidesIn reports whether the visitor may decide at one of these handlers, or of those in their routes.
func (w *walker) decidesIn(handlers []caddyhttp.MiddlewareHandler) bool {
	return slices.ContainsFunc(handlers, func(h caddyhttp.MiddlewareHandler) bool {
		if w.decides(h) {
			return true
		}
		if _, named := h.(*caddyhttp.Invoke); named { // it may
			return true
		}
		sub, ok := h.(*caddyhttp.Subroute)
		return ok && slices.ContainsFunc(sub.Routes, func(route caddyhttp.Route) bool { return w.decidesIn(route.Handlers) })
	})
}
