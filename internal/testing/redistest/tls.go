package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
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

type certs struct {
	client     TLSFiles
	serverCert string
	serverKey  string
}

// Certificate makes a certificate for 127.0.0.1 and "localhost", and returns the paths of the PEM files that a server and its
// clients need. They are removed with the test.
func Certificate(t TB) (cert, key, ca string) {
	all := makeCerts(t)
	return all.serverCert, all.serverKey, all.client.CA
}

// authority signs certificates and writes them to files.
type authority struct {
	t    TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// makeCerts makes a CA, a certificate for the server and one for a client.
func makeCerts(t TB) certs {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "redistest CA"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	caFile, _ := a.issue("ca", ca)
	serverCert, serverKey := a.issue("server", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "redis.test"},
		DNSNames:    []string{"redis.test", "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		// Replicas, Sentinels and nodes of a Cluster show this certificate to each other.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	clientCert, clientKey := a.issue("client", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "redistest client"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return certs{
		client:     TLSFiles{CA: caFile, Cert: clientCert, Key: clientKey},
		serverCert: serverCert,
		serverKey:  serverKey,
	}
}

// issue signs the template and returns the files of the certificate and its
// key. The first certificate signs itself and then the others.
func (a *authority) issue(name string, template *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("making the key of %s: %v", name, err)
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	if a.cert == nil {
		a.cert, a.key = template, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatalf("signing the certificate of %s: %v", name, err)
	}
	if a.cert == template {
		// The parsed form has the key id that the others must refer to.
		if a.cert, err = x509.ParseCertificate(signed); err != nil {
			a.t.Fatalf("parsing the certificate of %s: %v", name, err)
		}
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatalf("encoding the key of %s: %v", name, err)
	}
	return a.write(name+".crt", "CERTIFICATE", signed), a.write(name+".key", "PRIVATE KEY", encoded)
}

func (a *authority) write(name, kind string, content []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		a.t.Fatalf("writing %s: %v", name, err)
	}
	return path
}
