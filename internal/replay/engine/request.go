package engine

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/walk"
)

// caddyRequest is a request as its server would hand it to its routes.
type caddyRequest struct {
	*http.Request
	refused error // the server answers without its routes
}

// maker makes requests of records.
type maker struct {
	host   string // of requests whose log has none
	reuses bool   // what Caddy prepares for a request may be used for the next one
	header http.Header
	values []string
	made   caddyRequest
	before map[*caddyhttp.Server]*prepared
	trusts map[*caddyhttp.Server]bool // the server trusts proxies
}

// prepared is a request that Caddy has prepared, with what is in its context. Preparing one takes as
// long as deciding it, so it is used again. Nothing in it is left from the request before, unless
// handlers or matchers leave something in the replacer: see [needs.reusable].
type prepared struct {
	request *http.Request
	vars    map[string]any
	groups  map[string]struct{}
	url     url.URL
	tls     tls.ConnectionState
}

// anyPort is the port of clients, which no format has.
const anyPort = ":50000"

// make makes the request of an exchange. A request that is reused is valid until the next one. It
// returns nil if the record has no valid URI.
func (m *maker) make(f *exchange, reused bool) *caddyRequest {
	if !reused {
		m = &maker{host: m.host, trusts: m.trusts}
	}
	record := f.record
	if record.Method == "" {
		return nil
	}
	finds := m.trusts[f.server] && (record.RemoteIP == "" || forwardedIn(record, f.server) != "") // the server finds out the client
	p := m.before[f.server]
	if p == nil || finds {
		p = new(prepared)
	}
	u := p.parse(record.URI)
	if u == nil {
		return nil
	}
	r := p.request
	if r == nil {
		r = new(http.Request)
	}
	r.Method, r.URL, r.Host, r.RequestURI, r.Body = record.Method, u, cmp.Or(record.Host, m.host), record.URI, http.NoBody
	r.Header, r.RemoteAddr, r.TLS, r.ContentLength, r.Form, r.PostForm = m.fields(record.Header), address(record), nil, 0, nil, nil
	r.Proto, r.ProtoMajor, r.ProtoMinor = protocol(record.Proto)
	if length := r.Header["Content-Length"]; length != nil {
		if n, err := strconv.ParseInt(length[0], 10, 64); err == nil {
			r.ContentLength = n
		}
	}
	if record.Scheme == "https" || record.Scheme == "" && len(f.server.TLSConnPolicies) > 0 {
		t := &record.TLS
		p.tls = tls.ConnectionState{
			HandshakeComplete: true, Version: t.Version, CipherSuite: t.CipherSuite, NegotiatedProtocol: t.Proto, ServerName: t.ServerName, DidResume: t.Resumed,
		}
		r.TLS = &p.tls
	}
	m.made.refused = walk.Admit(f.server, r)
	if p.request == nil {
		r = m.prepare(p, r, f.server)
	} else {
		clear(p.groups)
		clear(p.vars)
		p.vars[caddyhttp.TrustedProxyVarKey] = false
		if record.RemoteIP == "" {
			p.vars[caddyhttp.ClientIPVarKey] = canonical(record)
		}
	}
	if record.RemoteIP != "" && !finds {
		p.vars[caddyhttp.ClientIPVarKey] = record.ClientIP
	}
	f.client, _ = p.vars[caddyhttp.ClientIPVarKey].(string)
	m.made.Request = r
	return &m.made
}

// prepare does what a server does before its routes, and keeps the result if it may be used again.
func (m *maker) prepare(p *prepared, r *http.Request, server *caddyhttp.Server) *http.Request {
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, server)
	p.vars, _ = r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if !m.reuses {
		return r
	}
	p.request = r
	p.groups, _ = r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{})
	if m.before == nil {
		m.before = make(map[*caddyhttp.Server]*prepared)
	}
	m.before[server] = p
	return r
}

// newMaker returns a maker for the servers of a config.
func newMaker(c *Config, n *needs) maker {
	m := maker{host: n.host(), reuses: n.reusable(), trusts: make(map[*caddyhttp.Server]bool)}
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
		name = http.CanonicalHeaderKey(name)
		for i := range record.Header {
			if f := &record.Header[i]; f.Name == name && f.Value != "" && !f.Redacted {
				return name
			}
		}
	}
	return ""
}

// canonical returns the address of the client as Caddy writes it.
func canonical(r *logs.Record) string {
	text, _, _ := strings.Cut(r.ClientIP, "%")
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.String()
	}
	return ""
}

// fields makes a header of the fields of a record.
func (m *maker) fields(all []logs.Field) http.Header {
	if m.header == nil {
		m.header = make(http.Header, len(all))
	}
	clear(m.header)
	if m.values = m.values[:0]; cap(m.values) < len(all) {
		m.values = make([]string, 0, 2*len(all))
	}
	for i := range all {
		name, n := all[i].Name, len(m.values)
		if before := m.header[name]; before != nil {
			m.header[name] = append(before, all[i].Value)
			continue
		}
		m.values = append(m.values, all[i].Value)
		m.header[name] = m.values[n : n+1 : n+1]
	}
	return m.header
}

// address is that of the connection.
func address(r *logs.Record) string {
	ip := cmp.Or(r.RemoteIP, r.ClientIP)
	if strings.IndexByte(ip, ':') >= 0 {
		return "[" + ip + "]" + anyPort
	}
	return ip + anyPort
}

// parse parses the target of a request as net/http does; it returns nil if that is not valid.
func (p *prepared) parse(uri string) *url.URL {
	if path, query, plain := plainTarget(uri); plain {
		p.url = url.URL{Path: path, RawQuery: query}
		return &p.url
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil
	}
	return u
}

// plainTarget splits a target of which nothing needs decoding. [url.ParseRequestURI] would find the
// same path and query, and take longer.
func plainTarget(uri string) (path, query string, plain bool) {
	if uri == "" || uri[0] != '/' {
		return "", "", false
	}
	for i := range len(uri) {
		switch c := uri[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '/' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~', c == '=', c == '&', c == '+', c == ',', c == '@':
		case c == '?':
			query = uri[i+1:]
			for j := range len(query) {
				if query[j] <= ' ' || query[j] >= 0x7f {
					return "", "", false
				}
			}
			return uri[:i], query, query != ""
		default:
			return "", "", false
		}
	}
	return uri, "", true
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
