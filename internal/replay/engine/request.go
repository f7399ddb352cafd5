package engine

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// caddyRequest is a request as its server would hand it to its routes.
type caddyRequest struct {
	*http.Request
	refused error // the server answers without its routes
}

// maker makes requests of records.
type maker struct {
	host   string                     // of requests whose log has none
	trusts map[*caddyhttp.Server]bool // the server trusts proxies
}

// anyPort is the port of clients, which no format has.
const anyPort = ":50000"

// make makes the request of an exchange, and does what its server does before its routes. It returns nil if the
// record has no valid URI.
func (m *maker) make(f *exchange) *caddyRequest {
	record := f.record
	u, err := url.ParseRequestURI(record.URI)
	if record.Method == "" || err != nil {
		return nil
	}
	header := record.Header.Clone() // its way may change it
	if header == nil {
		header = make(http.Header)
	}
	r := &http.Request{
		Method: record.Method, URL: u, Host: cmp.Or(record.Host, m.host), RequestURI: record.URI, Body: http.NoBody,
		Header: header, RemoteAddr: address(record),
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = protocol(record.Proto)
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil {
		r.ContentLength = n
	}
	if record.Scheme == "https" || record.Scheme == "" && len(f.server.TLSConnPolicies) > 0 {
		t := &record.TLS
		r.TLS = &tls.ConnectionState{
			HandshakeComplete: true, Version: t.Version, CipherSuite: t.CipherSuite, NegotiatedProtocol: t.Proto, ServerName: t.ServerName, DidResume: t.Resumed,
		}
	}
	made := &caddyRequest{refused: walk.Admit(f.server, r)}
	made.Request = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, f.server)
	vars, _ := made.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if record.RemoteIP != "" && !(m.trusts[f.server] && forwardedIn(record, f.server) != "") { // else the server finds out the client
		vars[caddyhttp.ClientIPVarKey] = record.ClientIP
	}
	f.client, _ = vars[caddyhttp.ClientIPVarKey].(string)
	f.proxy, _ = vars[caddyhttp.TrustedProxyVarKey].(bool)
	return made
}

// newMaker returns a maker for the servers of a config.
func newMaker(c *Config, n *needs) maker {
	m := maker{host: n.host(), trusts: make(map[*caddyhttp.Server]bool)}
	for _, server := range c.App.Servers {
		source := clientip.SourceOf(server)
		m.trusts[server] = len(source.Trusted) > 0 || source.TrustsSockets
	}
	return m
}

// forwardedIn returns the header of a record in which a proxy has passed on its client's address;
// empty without one.
func forwardedIn(record *logs.Record, server *caddyhttp.Server) string {
	for _, name := range server.ClientIPHeaders {
		if value := record.Header.Get(name); value != "" && value != logs.Redacted {
			return http.CanonicalHeaderKey(name)
		}
	}
	return ""
}

// address is that of the connection.
func address(r *logs.Record) string {
	ip := cmp.Or(r.RemoteIP, r.ClientIP)
	switch {
	case ip == logs.Socket:
		return ip
	case strings.Contains(ip, ":"):
		return "[" + ip + "]" + anyPort
	}
	return ip + anyPort
}

func protocol(text string) (string, int, int) {
	switch text {
	case "HTTP/1.1", "":
		return "HTTP/1.1", 1, 1
	case "HTTP/2.0", "HTTP/2":
		return "HTTP/2.0", 2, 0
	case "HTTP/3.0", "HTTP/3":
		return "HTTP/3.0", 3, 0
	}
	if major, minor, ok := http.ParseHTTPVersion(text); ok {
		return text, major, minor
	}
	return "HTTP/1.1", 1, 1
}
