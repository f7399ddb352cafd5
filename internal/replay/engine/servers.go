package engine

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// servers finds the server that a request of a log came to.
type servers struct {
	app   *caddyhttp.App
	sites map[string]*sites // by server
	host  string            // of requests whose log has none
	known map[origin]*caddyhttp.Server
}

// origin is what a log says about the server of a request.
type origin struct {
	scheme, port, logger, host string

	redirected bool // to https, as Caddy does for a host that another server has
}

// maxOrigins bounds the origins that are remembered, because clients choose hosts.
const maxOrigins = 1 << 12

// of returns the server of a request: the one that has its host; of several, the one that writes to the
// logger of the line; or listens on the port of its host; or takes its scheme. So a log of a proxy that
// ends TLS is replayed on a site without TLS, and the other way round. It returns nil if there is no
// server at all.
func (s *servers) of(r *logs.Record) *caddyhttp.Server {
	if len(s.app.Servers) == 1 {
		for _, server := range s.app.Servers {
			return server
		}
	}
	host, port := cmp.Or(r.Host, s.host), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	at := origin{r.Scheme, port, r.Logger, host, r.Scheme == "http" && r.Status == http.StatusPermanentRedirect}
	if server, ok := s.known[at]; ok {
		return server
	}
	if s.known == nil || len(s.known) >= maxOrigins {
		s.known = make(map[origin]*caddyhttp.Server)
	}
	at.scheme, at.port, at.logger, at.host = strings.Clone(at.scheme), strings.Clone(at.port), strings.Clone(at.logger), strings.Clone(at.host)
	server := s.find(at)
	s.known[at] = server
	return server
}

func (s *servers) find(at origin) (best *caddyhttp.Server) {
	bestFit := -1
	for _, name := range slices.Sorted(maps.Keys(s.app.Servers)) {
		if fit := s.fit(name, at); fit > bestFit {
			best, bestFit = s.app.Servers[name], fit
		}
	}
	return best
}

// fit says how well a server fits an origin.
func (s *servers) fit(name string, at origin) (fit int) {
	server := s.app.Servers[name]
	if logsTo(server, at) {
		fit += 8
	}
	port, err := strconv.ParseUint(at.port, 10, 16)
	if err != nil {
		port = uint64(s.defaultPort(at.scheme))
	}
	if listensOn(server, uint(port)) {
		fit += 4
	}
	if tls := len(server.TLSConnPolicies) > 0; at.scheme == "" || tls == (at.scheme == "https") {
		fit += 2
	}
	isThere := fit >= 4 // the logger or the port is that of the server
	if has := s.sites[name]; has != nil && !at.redirected && (has.any && isThere || has.names(at.host)) {
		fit += 16
	}
	return fit
}

func (s *servers) defaultPort(scheme string) int {
	if scheme == "http" {
		return cmp.Or(s.app.HTTPPort, caddyhttp.DefaultHTTPPort)
	}
	return cmp.Or(s.app.HTTPSPort, caddyhttp.DefaultHTTPSPort)
}

// logsTo reports whether a server writes access logs of a host to a logger.
func logsTo(server *caddyhttp.Server, at origin) bool {
	name, isAccess := strings.CutPrefix(at.logger, "http.log.access.")
	if !isAccess || server.Logs == nil {
		return false
	}
	if server.Logs.DefaultLoggerName == name {
		return true
	}
	for _, names := range server.Logs.LoggerNames {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

func listensOn(server *caddyhttp.Server, port uint) bool {
	return slices.ContainsFunc(server.Listen, func(text string) bool {
		a, err := caddy.ParseNetworkAddress(text)
		return err == nil && !a.IsUnixNetwork() && !a.IsFdNetwork() && a.StartPort <= port && port <= a.EndPort
	})
}
