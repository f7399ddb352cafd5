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
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
)

// servers finds the server that a request of a log came to.
type servers struct {
	app   *caddyhttp.App
	names []string        // in order
	sites map[string]site // by server
	host  string          // of requests whose log has none: the first one that a site has
}

// site has the hosts of a server's routes, as its config was written.
type site struct {
	hosts  caddyhttp.MatchHost
	others bool
}

// newServers returns the servers of a config.
func newServers(c *offline.Config) *servers {
	s := &servers{app: c.App, names: slices.Sorted(maps.Keys(c.App.Servers)), sites: make(map[string]site)}
	for _, name := range s.names {
		hosts, others := c.Hosts(name)
		for _, host := range hosts {
			if !strings.ContainsAny(host, "*{") {
				s.host = cmp.Or(s.host, host)
			}
		}
		of := site{hosts, others}
		_ = of.hosts.Provision(caddy.Context{}) // cannot fail, because the config is set up
		s.sites[name] = of
	}
	s.host = cmp.Or(s.host, "localhost")
	return s
}

// origin is what a log says about the server of a request.
type origin struct {
	scheme, port, host string
	redirected         bool // to https, as Caddy does for a host that another server has
}

// of returns the server of a request: the one that has its host; of several, the one that listens on the port of its host;
// or takes its scheme. So a log of a proxy that ends TLS is replayed on a site without TLS, and the other way round. It
// returns nil if there is no server at all.
func (s *servers) of(r *logs.Record) (best *caddyhttp.Server) {
	host, port := cmp.Or(r.Host, s.host), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	at := origin{r.Scheme, port, host, r.Scheme == "http" && r.Status == http.StatusPermanentRedirect}
	bestFit := -1
	for _, name := range s.names {
		if len(s.names) == 1 {
			return s.app.Servers[name]
		}
		if fit := s.fit(name, &at); fit > bestFit {
			best, bestFit = s.app.Servers[name], fit
		}
	}
	return best
}

// fit says how well a server fits an origin.
func (s *servers) fit(name string, at *origin) (fit int) {
	server := s.app.Servers[name]
	port, err := strconv.Atoi(at.port)
	switch {
	case err == nil:
	case at.scheme == "http":
		port = cmp.Or(s.app.HTTPPort, caddyhttp.DefaultHTTPPort)
	default:
		port = cmp.Or(s.app.HTTPSPort, caddyhttp.DefaultHTTPSPort)
	}
	if slices.ContainsFunc(server.Listen, func(address string) bool { return trial.Hears(address, port, false) }) {
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
