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

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
)

// server is a server of a config.
type server struct {
	*caddyhttp.Server
	hosts  caddyhttp.MatchHost // of its routes, as the config was written
	others bool                // it has routes for all hosts
	trusts bool                // it trusts proxies
}

// serversOf returns the servers of a config, by name, and the host of requests whose log has none: the first one that a
// site has.
func serversOf(c *offline.Config) (all []*server, host string) {
	for _, name := range slices.Sorted(maps.Keys(c.App.Servers)) {
		s := &server{Server: c.App.Servers[name]}
		s.hosts, s.others = c.Hosts(name)
		for _, named := range s.hosts {
			if !strings.ContainsAny(named, "*{") {
				host = cmp.Or(host, named)
			}
		}
		_ = s.hosts.Provision(caddy.Context{}) // cannot fail, because the config is set up
		s.trusts = len(clientip.TrustedBy(s.Server)) > 0 || s.Server.TrustedProxiesUnix
		all = append(all, s)
	}
	return all, cmp.Or(host, "localhost")
}

// serverOf returns the server of a request of a log: the one that has its host; of several, the one that listens on the port
// of its host; or takes its scheme. So a log of a proxy that ends TLS is replayed on a site without TLS, and the other way
// round. It returns nil if there is no server at all.
func (s *setup) serverOf(r *logs.Record) (best *server) {
	if len(s.servers) == 1 {
		return s.servers[0]
	}
	host, written := cmp.Or(r.Host, s.host), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, written = host[:i], host[i+1:]
	}
	port, err := strconv.Atoi(written)
	if err != nil {
		port = trial.Port(s.config.App, r.Scheme)
	}
	redirected := r.Scheme == "http" && r.Status == http.StatusPermanentRedirect // to https, for a host of another server
	bestFit := -1
	for _, one := range s.servers {
		fit := 0
		hears := slices.ContainsFunc(one.Listen, func(address string) bool { return trial.Hears(address, port, false) })
		if hears {
			fit += 4
		}
		if tls := len(one.TLSConnPolicies) > 0; r.Scheme == "" || tls == (r.Scheme == "https") {
			fit += 2
		}
		if !redirected && (one.others && hears || one.names(host)) {
			fit += 16
		}
		if fit > bestFit {
			best, bestFit = one, fit
		}
	}
	return best
}

// names reports whether a route is for a host by its name.
func (s *server) names(host string) bool {
	r := (&http.Request{Host: host}).WithContext(context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
	matches, err := s.hosts.MatchWithError(r)
	return err == nil && matches
}
