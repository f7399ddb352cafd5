package trial

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Request is a request as its server would hand it to its routes.
type Request struct {
	*http.Request
	Server  *caddyhttp.Server
	Name    string // of the server
	Said    string // its URL without a password
	Refused error  // the server answers without its routes
}

// Make makes the request that d describes, whose response goes to w. It sets the method of d if that is empty.
func Make(app *caddyhttp.App, d *adminapi.Request, w http.ResponseWriter) (*Request, error) {
	r, err := http.NewRequestWithContext(context.Background(), d.Method, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	u := r.URL
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("url %q: write a whole URL, such as https://example.com/login", d.URL)
	}
	if r.RemoteAddr, err = parseFrom(d.From); err != nil {
		return nil, err
	}
	name, port, err := serverFor(app, u, d.Server)
	if err != nil {
		return nil, err
	}
	server := app.Servers[name]
	d.Method, r.RequestURI = r.Method, u.RequestURI()
	if err := setHeader(r, d.Header); err != nil {
		return nil, err
	}
	if err := setTLS(app, name, server, r, u, port); err != nil {
		return nil, err
	}
	if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil {
		return nil, fmt.Errorf("url %q: %w", d.URL, err)
	}
	if u.User != nil && r.Header.Get("Authorization") == "" {
		password, _ := u.User.Password()
		r.SetBasicAuth(u.User.Username(), password)
	}
	if len(d.Body) > 0 {
		r.Header.Set("Content-Length", strconv.Itoa(len(d.Body)))
	}
	made := &Request{Server: server, Name: name, Said: u.Redacted(), Refused: walk.Admit(server, r)}
	repl := caddy.NewReplacer()
	made.Request = caddyhttp.PrepareRequest(r, repl, w, server)
	for _, assumed := range slices.Sorted(maps.Keys(d.Assume)) {
		name := placeholder.Full(strings.Trim(assumed, "{}"))
		if variable, ok := strings.CutPrefix(name, "http.vars."); ok {
			caddyhttp.SetVar(made.Request.Context(), variable, d.Assume[assumed])
		} else {
			repl.Set(name, d.Assume[assumed])
		}
	}
	return made, nil
}

// parseFrom returns the address of a connection as a server sees it.
func parseFrom(text string) (string, error) {
	if text = cmp.Or(text, "127.0.0.1"); text == "@" { // a Unix socket
		return text, nil
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.String(), nil
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		hint := "write an IP address, such as 203.0.113.7 or [2001:db8::1]:443"
		if network, err := netip.ParsePrefix(text); err == nil {
			hint = "a request comes from one address, such as " + network.Addr().String()
		}
		return "", fmt.Errorf("from %q: %s", text, hint)
	}
	return net.JoinHostPort(address.String(), "50000"), nil // any port
}

// setHeader sets the headers, and the host if Host is among them.
func setHeader(r *http.Request, fields []string) error {
	for _, field := range fields {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return fmt.Errorf("header %.64q: write it as 'Name: value'", field)
		}
		value = textproto.TrimString(value)
		switch {
		case name == "" || strings.IndexFunc(name, placeholder.NotInFieldName) >= 0:
			return fmt.Errorf("header %.64q: %.64q is not the name of a header", field, name)
		case strings.IndexFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) >= 0:
			return fmt.Errorf("header %s: its value has a control character", name)
		case strings.EqualFold(name, "Host"):
			r.Host = value
		default:
			r.Header.Add(name, value)
		}
	}
	return nil
}

// setTLS makes the request one over TLS, if its URL says so and the server does.
func setTLS(app *caddyhttp.App, name string, server *caddyhttp.Server, r *http.Request, u *url.URL, port int) error {
	expects := len(server.TLSConnPolicies) > 0 && port != Port(app, "http")
	switch https := u.Scheme == "https"; {
	case expects && !https:
		return fmt.Errorf("url %q: server %s expects TLS there: write https", u.Redacted(), name)
	case !expects && https:
		return fmt.Errorf("url %q: server %s has no TLS there; if TLS ends in front of Caddy, write the URL as it reaches Caddy, with http", u.Redacted(), name)
	case !https:
		return nil
	}
	r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: u.Hostname()}
	if slices.Contains(server.Protocols, "h2") { // as browsers and curl do
		r.TLS.NegotiatedProtocol = "h2"
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	}
	return nil
}

// serverFor returns the server that gets a request for a URL, and the port.
func serverFor(app *caddyhttp.App, u *url.URL, named string) (name string, port int, err error) {
	if port, _ = strconv.Atoi(u.Port()); port == 0 {
		port = Port(app, u.Scheme)
	}
	all := slices.Sorted(maps.Keys(app.Servers))
	if named != "" {
		if app.Servers[named] == nil {
			return "", 0, fmt.Errorf("no server %q; the servers are %s", named, strings.Join(all, ", "))
		}
		return named, port, nil
	}
	var found, described []string
	for _, name := range all {
		listen := app.Servers[name].Listen
		described = append(described, name+" ("+strings.Join(listen, " ")+")")
		if slices.ContainsFunc(listen, func(address string) bool { return Hears(address, port, true) }) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", 0, fmt.Errorf("url %q: no server listens on port %d; the servers are %s; write the URL as it reaches Caddy, or name the server",
			u.Redacted(), port, strings.Join(described, ", "))
	case 1:
		return found[0], port, nil
	}
	return "", 0, fmt.Errorf("url %q: several servers may get it, %s: name the server", u.Redacted(), strings.Join(found, " and "))
}

// Port returns the port of URLs that name none.
func Port(app *caddyhttp.App, scheme string) int {
	if scheme == "http" {
		return cmp.Or(app.HTTPPort, caddyhttp.DefaultHTTPPort)
	}
	return cmp.Or(app.HTTPSPort, caddyhttp.DefaultHTTPSPort)
}

// Hears reports whether an address that a server listens on gets requests to a port. A socket has none, so it may.
func Hears(address string, port int, sockets bool) bool {
	a, err := caddy.ParseNetworkAddress(address)
	if err == nil && (a.IsUnixNetwork() || a.IsFdNetwork()) {
		return sockets
	}
	return err == nil && uint(port) >= a.StartPort && uint(port) <= a.EndPort
}
