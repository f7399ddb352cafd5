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
	header http.Header
	values []string
	made   caddyRequest
}

// anyPort is the port of clients, which no format has.
const anyPort = ":50000"

// make makes the request of a flight. A request that is reused is valid until the next one. It
// returns nil if the record has no valid URI.
func (m *maker) make(f *flight, reused bool) *caddyRequest {
	if !reused {
		m = &maker{host: m.host}
	}
	record := f.record
	u, err := parseURI(record.URI)
	if err != nil || record.Method == "" {
		return nil
	}
	r := &http.Request{
		Method: record.Method, URL: u, Host: cmp.Or(record.Host, m.host), RequestURI: record.URI, Body: http.NoBody,
		Header: m.fields(record.Header), RemoteAddr: address(record),
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
	m.made.refused = walk.Admit(f.server, r)
	m.made.Request = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, f.server)
	if record.RemoteIP != "" { // else the server finds out which client it is
		caddyhttp.SetVar(m.made.Context(), caddyhttp.ClientIPVarKey, record.ClientIP)
	}
	return &m.made
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
	ip := r.RemoteIP
	if ip == "" {
		ip = r.ClientIP
	}
	if strings.IndexByte(ip, ':') >= 0 {
		return "[" + ip + "]" + anyPort
	}
	return ip + anyPort
}

// parseURI parses the first line of a request as net/http does.
func parseURI(uri string) (*url.URL, error) { return url.ParseRequestURI(uri) }

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
