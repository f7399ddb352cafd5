package walk

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
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
	case len(r.Method) > 32: // as in Caddy
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
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// dropAliases drops headers that a CGI program would take for others: those with underscores or
// dots, unless the server expects them, and then those with hyphens instead.
func dropAliases(server *caddyhttp.Server, header http.Header) {
	underscores, dots := server.ExpectedUnderscoreHeaders, server.ExpectedDotHeaders
	for name, values := range header {
		underscore, dot := strings.ContainsRune(name, '_'), strings.ContainsRune(name, '.')
		drop := false
		if underscore || dot {
			drop = len(values) > 1 || !(underscore && expects(underscores, name, "_", "_") || dot && expects(dots, name, ".", "."))
		} else {
			drop = expects(underscores, name, "_", "-") || expects(dots, name, ".", "-")
		}
		if drop {
			delete(header, name)
		}
	}
}

// expects reports whether a name is in a list, with another separator. Entries may end in *, but not for names with both
// separators.
func expects(list []string, name, separator, instead string) bool {
	exactly := strings.ContainsRune(name, '_') && strings.ContainsRune(name, '.')
	return slices.ContainsFunc(list, func(entry string) bool {
		matches, _ := path.Match(http.CanonicalHeaderKey(strings.ReplaceAll(entry, separator, instead)), name)
		return matches && !(exactly && strings.HasSuffix(entry, "*"))
	})
}
