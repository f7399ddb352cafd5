// Package placeholder checks that placeholders exist, and reads their values.
package placeholder

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
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
	_, ok := exampleReplacer("192.0.2.1:1").Get(name)
	if named := !strings.HasSuffix(name, "."); named && (ok && validField(name) || hasAnyPrefix(name, setByModules)) {
		return true, nil
	}
	if ofClient.MatchString(name) || hasAnyPrefix(name, knownNamespaces) {
		hint := ""
		if similar := similarTo(name); similar != "" {
			hint = "; did you mean " + Written(similar) + "?"
		}
		return false, fmt.Errorf("unknown placeholder {%s}: it is always empty%s%s", name, consequence, hint)
	}
	return false, nil
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

// HeaderPrefix is the namespace of headers.
const HeaderPrefix = "http.request.header."

// Sent are the namespaces of what clients send as it is.
var Sent = map[string]string{"header": HeaderPrefix, "query": "http.request.uri.query.", "cookie": "http.request.cookie."}

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

// setByModules are beginnings of placeholders that Caddy's modules and this one set for each request.
var setByModules = []string{
	"file.", "http.auth.", "http.error", "http.intercept.", "http.matchers.",
	"http.regexp.", "http.response.", "http.reverse_proxy.", "http.url_pattern.",
	JSONPrefix, ownPrefix + "exceeded.", ownPrefix + "allowed", ownPrefix + "zone", ownPrefix + "limit", ownPrefix + "remaining",
	ownPrefix + "reset", ownPrefix + "retry_after", ownPrefix + "cost", ownPrefix + "plan",
}

// ownPrefix is the namespace of this module.
const ownPrefix = "http.rate_limit."

// JSONPrefix is the namespace of fields in a JSON body. Zones that look at one give it its value.
const JSONPrefix = ownPrefix + "json."

// knownNamespaces are the namespaces in which all placeholders are known. Other modules use other
// names, also below "http.".
var knownNamespaces = []string{"http.request.", ownPrefix, "system.", "time."}

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

// suggestions are the placeholders that are suggested for a misspelled one, some of them also by their names in Caddyfiles.
var suggestions = []string{
	"client_ip", "remote_host", "hostport", "http.vars.client_ip", "http.request.remote.host", "http.request.remote",
	"http.request.remote.port", "http.request.host", "http.request.hostport", "http.request.method", "http.request.scheme",
	"http.request.uri", "http.request.uri.path", "http.request.uri.query", "http.request.orig_uri", "http.request.orig_uri.path",
	"http.request.host.labels.0", "http.request.proto", "http.request.tls.client.fingerprint", "http.request.tls.client.subject",
	"http.request.tls.client.serial", "http.request.tls.client.issuer", "http.request.tls.server_name",
	"http.auth.user.id", "http.regexp.name.1", "system.hostname", "time.now.unix", "env.NAME",
}

// ofClient are names for the address of the client that are common on the web, and wrong or old.
var ofClient = regexp.MustCompile(`^(http\.(request\.)?)?(remote|client)[._]?(ip|addr|address)(/.*)?$`)

// inNamespace matches names of headers, cookies and query parameters, also in namespaces that are called nearly as Caddy's, and
// with a default behind them that Caddy does not know, as in {http.request.header.X:none}.
var inNamespace = regexp.MustCompile("^http\\.request\\.(?:uri\\.)?(header|cookie|query)s?(?:\\.|$)([\\w!#$%&'*+.^`|~-]*)")

// similarTo returns the placeholder that a misspelled name most likely means, or "".
func similarTo(name string) string {
	if ofClient.MatchString(name) {
		return "http.vars.client_ip"
	}
	if in := inNamespace.FindStringSubmatch(name); in != nil {
		return Sent[in[1]] + cmp.Or(strings.Trim(in[2], "."), "NAME")
	}
	if rest, ok := strings.CutPrefix(name, "http.request.path"); ok {
		return "http.request.uri.path" + rest
	}
	if strings.HasPrefix(name, ownPrefix) {
		return JSONPrefix + "PATH"
	}
	return Full(suggest.Nearest(name, suggestions))
}

// varsPrefix is the namespace of a request's variables. Each of them exists as far as Caddy knows,
// and is empty unless something sets it.
const varsPrefix = "http.vars."

// IsConstant reports whether a placeholder has the same value for all requests.
func IsConstant(name string) bool { return hasAnyPrefix(name, []string{"env.", "file.", "system."}) }

// Meant returns the placeholder that text without braces was most likely meant to be, "" if there is
// none.
func Meant(text string) string {
	name := strings.Trim(text, "{}$% ")
	full := Full(name)
	if known, err := Check(name, ""); full != name || known && err == nil && strings.Contains(name, ".") {
		return full
	}
	return similarTo(name)
}

// Cut splits text that begins with a placeholder into its name and the rest.
func Cut(text string) (name, rest string, ok bool) {
	inside, ok := strings.CutPrefix(text, "{")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(inside, "}")
	return name, strings.TrimSpace(rest), ok && name != "" && !strings.Contains(name, "{")
}

// CheckOption checks the placeholder of an option. It accepts one that another module may set,
// because the option has a fallback if nothing does, and an option without one.
func CheckOption(option, placeholder string) error {
	if _, err := Check(placeholder, ""); err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return nil
}

// Text returns the value of a placeholder as text.
func Text(repl *caddy.Replacer, placeholder string) string {
	v, _ := repl.Get(placeholder)
	return text(v)
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return caddy.ToString(v)
}
