package engine

import (
	"maps"
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
	known map[origin]*caddyhttp.Server
}

// origin is what a log says about the server of a request.
type origin struct{ scheme, port, logger, host string }

// maxOrigins bounds the origins that are remembered, because clients choose hosts.
const maxOrigins = 1 << 12

// of returns the server of a request: the one that writes to the logger of the line; or listens on the
// port of its host; or takes its scheme. It returns nil if there is no server at all.
func (s *servers) of(r *logs.Record) *caddyhttp.Server {
	if len(s.app.Servers) == 1 {
		for _, server := range s.app.Servers {
			return server
		}
	}
	host, port := r.Host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	at := origin{r.Scheme, port, r.Logger, host}
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
		if fit := s.fit(s.app.Servers[name], at); fit > bestFit {
			best, bestFit = s.app.Servers[name], fit
		}
	}
	return best
}

// fit says how well a server fits an origin.
func (s *servers) fit(server *caddyhttp.Server, at origin) (fit int) {
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
	return fit
}

func (s *servers) defaultPort(scheme string) int {
	port, usual := s.app.HTTPSPort, caddyhttp.DefaultHTTPSPort
	if scheme == "http" {
		port, usual = s.app.HTTPPort, caddyhttp.DefaultHTTPPort
	}
	if port == 0 {
		return usual
	}
	return port
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
