package caddyratelimit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// checkPlaceholder asks Caddy itself whether it knows a placeholder. It returns false
// for one that only another module can know, and an error for one in Caddy's own
// namespaces that does not exist: such a one expands to nothing, for every client.
func checkPlaceholder(name string) (known bool, err error) {
	if full, ok := shorthands[name]; ok {
		return false, fmt.Errorf("{%s} is short for {%s} in Caddyfiles only: write {%s}", name, full, full)
	}
	if _, ok := exampleReplacer().Get(name); ok || begins(name, setByOthers) {
		return true, nil
	}
	if _, ok := meant[name]; ok || begins(name, caddysOwn) {
		return false, fmt.Errorf("unknown placeholder {%s}: Caddy would take it for nothing and give all clients one limit; did you mean {%s}?",
			name, nearest(name))
	}
	return false, nil
}

// setByOthers are namespaces of Caddy in which modules set placeholders as they run.
var setByOthers = []string{
	"file.", "http.auth.", "http.error", "http.intercept.", "http.matchers.",
	"http.rate_limit.", "http.regexp.", "http.response.", "http.reverse_proxy.",
}

// caddysOwn are the namespaces that are Caddy's, and known in full. Other modules use
// names of their own, also below "http.".
var caddysOwn = []string{"http.request.", "system.", "time."}

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// exampleReplacer has the placeholders of a request.
func exampleReplacer() *caddy.Replacer {
	r := &http.Request{Method: http.MethodGet, URL: new(url.URL), Header: make(http.Header), RemoteAddr: "192.0.2.1:1"}
	r = r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{})))
	repl := caddy.NewReplacer().WithoutFile()
	caddyhttp.PrepareRequest(r, repl, httptest.NewRecorder(), new(caddyhttp.Server))
	return repl
}

// shorthands are what people mean by a name without a namespace, which Caddy's Caddyfile
// adapter spells out and JSON does not.
var shorthands = map[string]string{
	"client_ip":   "http.vars.client_ip",
	"remote_host": "http.request.remote.host",
	"remote_ip":   "http.request.remote.host",
	"remote":      "http.request.remote",
	"host":        "http.request.host",
	"hostport":    "http.request.hostport",
	"method":      "http.request.method",
	"path":        "http.request.uri.path",
	"uri":         "http.request.uri",
	"query":       "http.request.uri.query",
	"scheme":      "http.request.scheme",
}

// common are the placeholders to propose for a misspelt one.
var common = []string{
	"http.vars.client_ip", "http.request.remote.host", "http.request.remote", "http.request.remote.port",
	"http.request.host", "http.request.hostport", "http.request.method", "http.request.scheme",
	"http.request.header.X-Api-Key", "http.request.cookie.session", "http.request.uri",
	"http.request.uri.path", "http.request.uri.path.0", "http.request.uri.query", "http.request.uri.query.key",
	"http.request.orig_uri", "http.request.orig_uri.path", "http.request.host.labels.0", "http.request.proto",
	"http.request.tls.client.fingerprint", "http.request.tls.client.subject", "http.request.tls.client.serial",
	"http.request.tls.client.issuer", "http.request.tls.server_name", "http.auth.user.id", "http.regexp.name.1",
	"system.hostname", "time.now.unix", "env.NAME",
}

// meant are names that are all over the web, and what their authors wanted.
var meant = map[string]string{
	"http.client_ip":                     "http.vars.client_ip",
	"http.remote_ip":                     "http.vars.client_ip",
	"http.request.remote_ip":             "http.vars.client_ip",
	"http.request.client_ip":             "http.vars.client_ip",
	"http.request.remote.ip":             "http.vars.client_ip",
	"http.request.remote_addr":           "http.vars.client_ip",
	"http.request.remote_host":           "http.request.remote.host",
	"http.request.headers.X-Api-Key":     "http.request.header.X-Api-Key",
	"http.request.headers.X-API-Key":     "http.request.header.X-API-Key",
	"http.request.header":                "http.request.header.X-Api-Key",
	"http.request.path":                  "http.request.uri.path",
	"http.request.headers.Authorization": "http.request.header.Authorization",
}

// nearest is the placeholder that a misspelt name most likely stands for.
func nearest(name string) string {
	if right, ok := meant[name]; ok {
		return right
	}
	best, least := common[0], len(name)+1
	for _, candidate := range common {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or changed to get from a to b
// (V. Levenshtein, 1965).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
