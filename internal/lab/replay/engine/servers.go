package engine

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
)

// servers finds the server that a request of a log came to.
type servers struct {
	app   *caddyhttp.App
	sites map[string]site // by server
	host  string          // of requests whose log has none
	known map[origin]*caddyhttp.Server
}

// site has the hosts of a server's routes, as its config was written.
type site struct {
	hosts  caddyhttp.MatchHost
	others bool
}

// newServers returns the servers of a config. The host is for requests whose log has none.
func newServers(c *offline.Config, host string) *servers {
	s := &servers{app: c.App, sites: make(map[string]site), host: host, known: make(map[origin]*caddyhttp.Server)}
	for name := range c.App.Servers {
		hosts, others := c.Hosts(name)
		of := site{hosts, others}
		_ = of.hosts.Provision(caddy.Context{}) // cannot fail, because the config is set up
		s.sites[name] = of
	}
	return s
}

// origin is what a log says about the server of a request.
type origin struct {
	scheme, port, host string
	redirected         bool // to https, as Caddy does for a host that another server has
}

// maxOrigins bounds the origins that are remembered, because clients choose hosts.
const maxOrigins = 1 << 12

// of returns the server of a request: the one that has its host; of several, the one that listens on the port of its host;
// or takes its scheme. So a log of a proxy that
// ends TLS is replayed on a site without TLS, and the other way round. It returns nil if there is no
// server at all.
func (s *servers) of(r *logs.Record) (best *caddyhttp.Server) {
	if len(s.app.Servers) == 1 {
		for _, server := range s.app.Servers {
			return server
		}
	}
	host, port := cmp.Or(r.Host, s.host), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	at := origin{r.Scheme, port, host, r.Scheme == "http" && r.Status == http.StatusPermanentRedirect}
	if server, ok := s.known[at]; ok {
		return server
	}
	bestFit := -1
	for _, name := range slices.Sorted(maps.Keys(s.app.Servers)) {
		if fit := s.fit(name, &at); fit > bestFit {
			best, bestFit = s.app.Servers[name], fit
		}
	}
	if len(s.known) >= maxOrigins {
		clear(s.known)
	}
	s.known[at] = best
	return best
}

// fit says how well a server fits an origin.
func (s *servers) fit(name string, at *origin) (fit int) {
	server := s.app.Servers[name]
	port, err := strconv.ParseUint(at.port, 10, 16)
	switch {
	case err == nil:
	case at.scheme == "http":
		port = uint64(cmp.Or(s.app.HTTPPort, caddyhttp.DefaultHTTPPort))
	default:
		port = uint64(cmp.Or(s.app.HTTPSPort, caddyhttp.DefaultHTTPSPort))
	}
	if slices.ContainsFunc(server.Listen, func(text string) bool {
		a, err := caddy.ParseNetworkAddress(text)
		return err == nil && !a.IsUnixNetwork() && !a.IsFdNetwork() && a.StartPort <= uint(port) && uint(port) <= a.EndPort
	}) {
		fit += 4
	}
	isThere := fit > 0 // the port is that of the server
	if tls := len(server.TLSConnPolicies) > 0; at.scheme == "" || tls == (at.scheme == "https") {
		fit += 2
	}
	if of := s.sites[name]; !at.redirected && (of.others && isThere || of.names(at.host)) {
		fit += 16
	}
	return fit
}

// names reports whether a route is for a host by its name.
func (s *site) names(host string) bool {
	r := (&http.Request{Host: host}).WithContext(context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
	matches, err := s.hosts.MatchWithError(r)
	return err == nil && matches
}
