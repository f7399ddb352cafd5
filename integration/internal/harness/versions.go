package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	certificate, key, roots := selfSigned(t)
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

// selfSigned makes a certificate for localhost.
func selfSigned(t *testing.T) (certificate, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	if parsed, err := x509.ParseCertificate(der); err == nil {
		roots.AddCert(parsed)
	}
	return certificate, key, roots
}
