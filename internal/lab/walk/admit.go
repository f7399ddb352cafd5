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
	const (
		longestMethod = 32
		slop          = 4096 // what net/http adds to the option
		separators    = len(": \r\n")
	)
	size := len(r.Method) + len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + separators
		}
	}
	host := Hostname(r.Host)
	switch {
	case server.MaxHeaderBytes > 0 && size > server.MaxHeaderBytes+slop:
		return caddyhttp.Error(http.StatusRequestHeaderFieldsTooLarge, fmt.Errorf("its header has %d bytes, and the server takes %d", size, server.MaxHeaderBytes))
	case len(r.Method) > longestMethod:
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

// dropAliases drops headers that a CGI program would take for others: those with underscores or
// dots, unless the server expects them, and then those with hyphens instead.
func dropAliases(server *caddyhttp.Server, header http.Header) {
	for name, values := range header {
		underscore, dot := strings.ContainsRune(name, '_'), strings.ContainsRune(name, '.')
		var drop bool
		switch {
		case underscore && dot:
			drop = !expects(server.ExpectedUnderscoreHeaders, name, false) && !expects(server.ExpectedDotHeaders, name, false)
		case underscore:
			drop = !expects(server.ExpectedUnderscoreHeaders, name, true)
		case dot:
			drop = !expects(server.ExpectedDotHeaders, name, true)
		default:
			drop = isAlias(server.ExpectedUnderscoreHeaders, "_", name) || isAlias(server.ExpectedDotHeaders, ".", name)
		}
		if drop || (underscore || dot) && len(values) > 1 {
			delete(header, name)
		}
	}
}

// expects reports whether a name is in a list, whose entries may end in *.
func expects(list []string, name string, globs bool) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, isGlob := strings.CutSuffix(entry, "*")
		if isGlob {
			return globs && strings.HasPrefix(name, http.CanonicalHeaderKey(prefix))
		}
		return name == http.CanonicalHeaderKey(entry)
	})
}

// isAlias reports whether a name is that of an entry with hyphens.
func isAlias(list []string, separator, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, isGlob := strings.CutSuffix(entry, "*")
		alias := http.CanonicalHeaderKey(strings.ReplaceAll(prefix, separator, "-"))
		return isGlob && strings.HasPrefix(name, alias) || !isGlob && name == alias
	})
}
