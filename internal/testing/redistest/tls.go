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
	"time"
)

// TLSFiles are the paths of the PEM files a client needs. They are removed with
// the test.
type TLSFiles struct {
	CA   string // signed the server's certificate and the client's
	Cert string // the client's
	Key  string // the client's
}

// Certificate makes a certificate for 127.0.0.1, "localhost" and "redis.test", and returns the paths of the PEM files that a server
// and its clients need. They are removed with the test.
func Certificate(t TB) (cert, key, ca string) {
	t.Helper()
	files := makeCerts(t)
	return files.Cert, files.Key, files.CA
}

// makeCerts makes a certificate that has signed itself. The server has it, its clients, and replicas, Sentinels and nodes
// of a Cluster, which show it to each other.
func makeCerts(t TB) TLSFiles {
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
	dir := t.TempDir()
	files := TLSFiles{filepath.Join(dir, "test.crt"), filepath.Join(dir, "test.crt"), filepath.Join(dir, "test.key")}
	err = errors.Join(err, wrong,
		os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600),
		os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	if err != nil {
		t.Fatalf("making a certificate: %v", err)
	}
	return files
}
