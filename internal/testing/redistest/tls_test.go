package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// tlsConfig trusts the CA of the files, and shows their certificate if it should.
func tlsConfig(t *testing.T, files TLSFiles, showCert bool, serverName string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: serverName}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", files.CA)
	}
	if showCert {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// handshake returns the server's error about the client. With TLS 1.3 it comes only after the
// client's part of the handshake. Reading always finds it; a client that writes first, as
// go-redis does, may get "connection reset".
func handshake(t *testing.T, addr string, config *tls.Config) error {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func TestTLS(t *testing.T) {
	t.Parallel()
	for name, clientCerts := range map[string]bool{"server only": false, "client certificates": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, WithTLS(clientCerts))
			for _, serverName := range []string{"127.0.0.1", "redis.test"} {
				config := tlsConfig(t, s.TLS(), true, serverName)
				mustPing(t, client(t, redis.Options{Addr: s.TLSAddr(), TLSConfig: config}))
			}
			wrongName := tlsConfig(t, s.TLS(), true, "wrong.test")
			wantError(t, handshake(t, s.TLSAddr(), wrongName), "not wrong.test")

			without := tlsConfig(t, s.TLS(), false, "redis.test")
			c := client(t, redis.Options{Addr: s.TLSAddr(), TLSConfig: without})
			if clientCerts {
				wantError(t, handshake(t, s.TLSAddr(), without), "certificate required")
				wantError(t, c.Ping(t.Context()).Err(), "")
			} else {
				mustPing(t, c)
			}

			mustPing(t, client(t, redis.Options{Addr: s.Addr()}))
			s.Restart()
			config := tlsConfig(t, s.TLS(), true, "redis.test")
			mustPing(t, client(t, redis.Options{Addr: s.TLSAddr(), TLSConfig: config}))
		})
	}
}

func TestTLSRefusesAStrangersCertificate(t *testing.T) {
	t.Parallel()
	s := Start(t, WithTLS(true))
	stranger := makeCerts(t).client
	stranger.CA = s.TLS().CA
	config := tlsConfig(t, stranger, true, "redis.test")
	wantError(t, handshake(t, s.TLSAddr(), config), "unknown certificate authority")
}
