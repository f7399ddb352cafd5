package harness

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// Version is a client of one version of HTTP.
type Version struct {
	Major  int
	Client *http.Client
	URL    string
}

// StartEveryVersion starts a Caddy that serves a site with and without TLS, and returns
// a client for each version of HTTP.
func StartEveryVersion(t *testing.T, options, site string, variables ...string) (*Server, []Version) {
	t.Helper()
	config, versions := EveryVersion(t, options, site)
	s := StartCaddy(t, config, variables...)
	return s, versions(s)
}

// EveryVersion returns a config that serves a site with and without TLS, and a function that returns a client for
// each version of HTTP to a server with that config.
func EveryVersion(t *testing.T, options, site string) (config string, versions func(*Server) []Version) {
	t.Helper()
	port := redistest.FreePort(t)
	certificate, key, ca := redistest.Certificate(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ReadPage(t, ca)))
	config = Caddyfile(options, site) + fmt.Sprintf(`
https://:%d {
	bind 127.0.0.1
	tls %s %s
	%s
}
`, port, certificate, key, site)
	return config, func(s *Server) []Version {
		config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
		h2 := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		h3 := &http3.Transport{TLSClientConfig: config}
		t.Cleanup(h2.CloseIdleConnections)
		t.Cleanup(func() { _ = h3.Close() })
		url := fmt.Sprintf("https://127.0.0.1:%d", port)
		return []Version{
			{1, NewClient(t, ""), s.URL("")},
			{2, &http.Client{Transport: h2, Timeout: patient.Patience}, url},
			{3, &http.Client{Transport: h3, Timeout: patient.Patience}, url},
		}
	}
}
