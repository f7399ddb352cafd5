// Package placeholder checks that placeholders exist, and reads their values.
package placeholder

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
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Check asks Caddy itself whether it knows a placeholder. It returns false for a placeholder that
// another module may set, and an error for one in Caddy's own namespaces that does not exist: that
// would be empty for every client. The error goes on with the consequence.
func Check(name, consequence string) (known bool, err error) {
	if full := Full(name); full != name {
		return false, fmt.Errorf("{%s} is short for {%s} only in Caddyfiles: write {%s}", name, full, full)
	}
	if strings.HasPrefix(name, RemotePrefix) {
		return true, checkRemotePrefix(name)
	}
	if rest, ok := strings.CutPrefix(name, "http.rate_limit."); ok && !isOwn(rest) {
		return false, fmt.Errorf("unknown placeholder {%s}: it is always empty%s; fields of a body are {%sPATH}", name, consequence, JSONPrefix)
	}
	_, ok := exampleReplacer("192.0.2.1:1").Get(name)
	if named := !strings.HasSuffix(name, "."); named && (ok && validField(name) || hasAnyPrefix(name, setByModules)) {
		return true, nil
	}
	if _, ok := renamed[name]; ok || hasAnyPrefix(name, caddyNamespaces) {
		hint := ""
		if similar := similarTo(name); similar != "" {
			hint = "; did you mean " + Written(similar) + "?"
		}
		return false, fmt.Errorf("unknown placeholder {%s}: Caddy would replace it with nothing%s%s", name, consequence, hint)
	}
	return false, nil
}

// isOwn reports whether this module sets a placeholder, whose name begins after its namespace.
func isOwn(name string) bool {
	for _, prefix := range []string{"json.", "exceeded."} {
		if strings.HasPrefix(name, prefix) && name != prefix {
			return true
		}
	}
	return slices.Contains([]string{"allowed", "zone", "limit", "remaining", "reset", "retry_after", "cost", "plan"}, name)
}

// RemotePrefix is the namespace of prefixes of the address of the connection.
const RemotePrefix = "http.request.remote.host/"

// checkRemotePrefix asks Caddy for the prefix of both kinds of address. The prefix is empty, for all
// clients, if its number of bits is missing or invalid.
func checkRemotePrefix(name string) error {
	for kind, remote := range map[string]string{"IPv4": "192.0.2.1:1", "IPv6": "[2001:db8::1]:1"} {
		if value, _ := exampleReplacer(remote).GetString(name); value == "" {
			return fmt.Errorf("{%s} gives all %s clients one limit: write the bits for both kinds of address, as in {%s24,64}",
				name, kind, RemotePrefix)
		}
	}
	return nil
}

// Full returns the placeholder that Caddy's Caddyfile adapter replaces a shorthand with, or the name itself.
func Full(name string) string {
	if strings.HasPrefix(name, "file.") {
		return name // not a shorthand here: the placeholder is the content of a file
	}
	segment := caddyfile.Segment{{Text: "{" + name + "}"}}
	httpcaddyfile.NewShorthandReplacer().ApplyToSegment(&segment)
	return strings.Trim(segment[0].Text, "{}")
}

// Short returns the name of a placeholder in Caddyfiles: the shortest one that Caddy
// expands to it, or else the name itself.
func Short(name string) string {
	for _, namespace := range []string{"http.request.uri.", "http.request.", "http.vars.", "http.regexp.", "http."} {
		rest, ok := strings.CutPrefix(name, namespace)
		if !ok {
			continue
		}
		for _, short := range []string{rest, strings.ReplaceAll(rest, ".", "_"), "re." + rest} {
			if Full(short) == name {
				return short
			}
		}
	}
	return name
}

// Written returns a placeholder as people write it in a Caddyfile, and as JSON needs it if that differs.
func Written(name string) string {
	if short := Short(name); short != name {
		return "{" + short + "}, in JSON {" + name + "}"
	}
	return "{" + name + "}"
}

// The namespaces of headers, query parameters and cookies.
const (
	HeaderPrefix = "http.request.header."
	QueryPrefix  = "http.request.uri.query."
	CookiePrefix = "http.request.cookie."
)

// validField reports whether a placeholder is not that of an impossible header.
func validField(name string) bool {
	field, ok := strings.CutPrefix(name, HeaderPrefix)
	return !ok || field != "" && strings.IndexFunc(field, NotInFieldName) < 0
}

// NotInFieldName reports whether the name of a header cannot have a character, by RFC 9110,
// section 5.1.
func NotInFieldName(r rune) bool {
	alphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// setByModules are namespaces in which Caddy's modules set placeholders for each request.
var setByModules = []string{
	"file.", "http.auth.", "http.error", "http.intercept.", "http.matchers.",
	"http.rate_limit.", "http.regexp.", "http.response.", "http.reverse_proxy.", "http.url_pattern.",
}

// caddyNamespaces are the namespaces in which all placeholders are known. Other modules use other
// names, also below "http.".
var caddyNamespaces = []string{"http.request.", "system.", "time."}

func hasAnyPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// exampleReplacer returns a replacer with the placeholders of an example request.
func exampleReplacer(remote string) *caddy.Replacer {
	r := &http.Request{Method: http.MethodGet, URL: new(url.URL), Header: make(http.Header), RemoteAddr: remote}
	r = r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{})))
	repl := caddy.NewReplacer().WithoutFile()
	caddyhttp.PrepareRequest(r, repl, httptest.NewRecorder(), new(caddyhttp.Server))
	return repl
}

// suggestions are the placeholders that are suggested for a misspelled one.
var suggestions = []string{
	"http.vars.client_ip", "http.request.remote.host", "http.request.remote", "http.request.remote.port",
	"http.request.host", "http.request.hostport", "http.request.method", "http.request.scheme",
	"http.request.header.X-Api-Key", "http.request.cookie.session", "http.request.uri",
	"http.request.uri.path", "http.request.uri.path.0", "http.request.uri.query", "http.request.uri.query.key",
	"http.request.orig_uri", "http.request.orig_uri.path", "http.request.host.labels.0", "http.request.proto",
	"http.request.tls.client.fingerprint", "http.request.tls.client.subject", "http.request.tls.client.serial",
	"http.request.tls.client.issuer", "http.request.tls.server_name", "http.auth.user.id", "http.regexp.name.1",
	"system.hostname", "time.now.unix", "env.NAME",
}

// renamed has wrong or old names that are common on the web, and the right ones.
var renamed = map[string]string{
	"remote_ip":                "http.vars.client_ip",
	"http.client_ip":           "http.vars.client_ip",
	"http.remote_ip":           "http.vars.client_ip",
	"http.request.remote_ip":   "http.vars.client_ip",
	"http.request.client_ip":   "http.vars.client_ip",
	"http.request.remote.ip":   "http.vars.client_ip",
	"http.request.remote_addr": "http.vars.client_ip",
	"http.request.remote_host": "http.request.remote.host",
	"http.request.header.":     "http.request.header.X-Api-Key",
	"http.request.header":      "http.request.header.X-Api-Key",
	CookiePrefix:               CookiePrefix + "session",
	QueryPrefix:                QueryPrefix + "key",
	"http.request.path":        "http.request.uri.path",
}

// renamedPrefixes has the same for the beginnings of names.
var renamedPrefixes = [][2]string{
	{HeaderPrefix, HeaderPrefix},
	{"http.request.headers.", HeaderPrefix},
	{"http.request.cookies.", CookiePrefix},
	{"http.request.query.", QueryPrefix},
}

// similarTo returns the placeholder that a misspelled name most likely means, or "".
func similarTo(name string) string {
	if right, ok := renamed[name]; ok {
		return right
	}
	for _, prefix := range renamedPrefixes {
		rest, ok := strings.CutPrefix(name, prefix[0])
		if end := strings.IndexFunc(rest, NotInFieldName); end >= 0 {
			rest = rest[:end] // {http.request.header.X:none} without the default, which Caddy does not know
		}
		if ok && rest != "" {
			return prefix[1] + rest
		}
	}
	if similar := suggest.Nearest(name, suggestions); similar != "" {
		return similar
	}
	for _, prefix := range numbered {
		if strings.HasPrefix(name, prefix) {
			return prefix + "0"
		}
	}
	return ""
}

// numbered are the namespaces whose names end in a number.
var numbered = []string{"http.request.host.labels.", "http.request.uri.path.", "http.request.orig_uri.path."}
