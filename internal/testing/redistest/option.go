package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Option changes how Start starts a server.
type Option func(*settings)

type settings struct {
	password string
	tls      bool
	certs    TLSFiles
	extra    []string // arguments
	host     string   // empty: 127.0.0.1
	sentinel []string // it is a Sentinel, with these lines of configuration
}

// settled is what options make of a server.
func settled(options []Option) (s settings) {
	for _, option := range options {
		option(&s)
	}
	return s
}

// WithPassword asks the default user for a password (requirepass). The admin
// client knows it.
func WithPassword(password string) Option {
	return func(s *settings) { s.password = password }
}

// WithUser adds an ACL user with a password and ACL rules such as "~rl:*" and
// "+evalsha". Without rules the user may log in and do nothing. The default
// user keeps all its rights.
func WithUser(name, password string, rules ...string) Option {
	return WithArgs(append([]string{"--user", name, "on", ">" + password}, rules...)...)
}

// WithTLS opens a TLS port beside the plain one. Its certificate is for
// 127.0.0.1 and "redis.test". With clientCerts the port refuses clients that
// show no certificate of the CA.
func WithTLS(clientCerts bool) Option {
	auth := map[bool]string{false: "no", true: "yes"}[clientCerts]
	return func(s *settings) { s.tls, s.extra = true, append(s.extra, "--tls-auth-clients", auth) }
}

// WithHosts has servers listen on other loopback addresses than 127.0.0.1, such as "::1": each server on
// the next one.
func WithHosts(hosts ...string) Option {
	var next atomic.Int64
	return func(s *settings) {
		s.host = hosts[int(next.Add(1))%len(hosts)]
		s.extra = append(s.extra, "--bind-source-addr", s.host) // by which others know it
	}
}

// WithArgs passes arguments on to redis-server, such as "--maxmemory", "2mb".
// They come last, so they win over those of this package. Passwords belong in
// WithPassword, where the admin client learns them.
func WithArgs(args ...string) Option {
	return func(s *settings) { s.extra = append(s.extra, args...) }
}

// arguments returns the command line of the server.
func (s *Server) arguments() []string {
	args := []string{
		"--bind", s.host(),
		"--port", strconv.Itoa(s.port),
		"--unixsocket", s.Socket(),
		"--unixsocketperm", "700",
		"--dir", s.dir,
		"--daemonize", "no",
	}
	set := s.settings
	if set.sentinel == nil {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	if set.password != "" {
		args = append(args, "--requirepass", set.password)
	}
	if set.tls {
		args = append(args,
			"--tls-port", strconv.Itoa(s.tlsPort),
			"--tls-ca-cert-file", set.certs.CA,
			"--tls-cert-file", set.certs.Cert,
			"--tls-key-file", set.certs.Key,
		)
	}
	return append(args, set.extra...)
}

// command returns what follows the program's name on the command line. A Sentinel keeps
// in its configuration file what it learns, so it gets one, once.
func (s *Server) command() ([]string, error) {
	if s.settings.sentinel == nil {
		return s.arguments(), nil
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if _, err := os.Stat(path); err == nil {
		return []string{path, "--sentinel"}, nil
	}
	text := strings.Join(s.settings.sentinel, "\n") + "\n"
	return append([]string{path, "--sentinel"}, s.arguments()...), os.WriteFile(path, []byte(text), 0o600)
}

// TLSFiles are the paths of the PEM files a client needs. They are removed with
// the test.
type TLSFiles struct {
	CA   string // signed the server's certificate and the client's
	Cert string // the client's
	Key  string // the client's
}

// Certificate makes a certificate for 127.0.0.1, "localhost" and "redis.test" that has signed itself. The server has it, its clients,
// and replicas, Sentinels and nodes of a Cluster, which show it to each other.
func Certificate(t TB) TLSFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redis.test"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		DNSNames:              []string{"redis.test", "localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	encoded, wrong := x509.MarshalPKCS8PrivateKey(key)
	dir := ShortDir(t)
	files := TLSFiles{filepath.Join(dir, "test.crt"), filepath.Join(dir, "test.crt"), filepath.Join(dir, "test.key")}
	err = errors.Join(err, wrong,
		os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600),
		os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	if err != nil {
		t.Fatalf("making a certificate: %v", err)
	}
	return files
}
