package walk

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"
)

// Admit does what a server does with a request before its routes: it refuses some requests, and drops
// headers.
func Admit(server *caddyhttp.Server, r *http.Request) error {
	host := Hostname(r.Host)
	switch {
	case len(r.Method) > 32:
		return caddyhttp.Error(http.StatusMethodNotAllowed, errors.New("its method is too long"))
	case r.Host == "" && r.ProtoAtLeast(1, 1) && !r.ProtoAtLeast(2, 0), !httpguts.ValidHostHeader(r.Host), host != "" && strings.Trim(host, ".") == "":
		return caddyhttp.Error(http.StatusBadRequest, errors.New("it has no valid host"))
	case server.StrictSNIHost != nil && *server.StrictSNIHost && r.TLS != nil && !strings.EqualFold(r.TLS.ServerName, host):
		return caddyhttp.Error(http.StatusMisdirectedRequest, fmt.Errorf("the host in TLS (%s) and in the header (%s) differ", r.TLS.ServerName, host))
	}
	dropAliases(server, r.Header)
	return nil
}

// Hostname returns a host without its port.
func Hostname(hostport string) string {
	if strings.IndexByte(hostport, ':') < 0 {
		return hostport // SplitHostPort would allocate an error
	}
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// dropAliases drops headers that a CGI program would take for others: those with underscores or dots, unless the server
// expects their names.
func dropAliases(server *caddyhttp.Server, header http.Header) {
	for name := range header {
		is := func(expected string) bool { return http.CanonicalHeaderKey(expected) == name }
		if strings.ContainsAny(name, "_.") && !slices.ContainsFunc(server.ExpectedUnderscoreHeaders, is) &&
			!slices.ContainsFunc(server.ExpectedDotHeaders, is) {
			delete(header, name)
		}
	}
}
