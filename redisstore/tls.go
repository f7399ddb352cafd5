package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// TLS says how to encrypt.
type TLS struct {
	// CA is a PEM file with the certificates to trust. Default: the system's.
	CA string

	// Cert and Key are PEM files with the client's certificate and its key.
	Cert, Key string

	// ServerName is what the server's certificate must be for. Default: the host.
	ServerName string

	// InsecureSkipVerify accepts any certificate, also that of an attacker in between.
	InsecureSkipVerify bool
}

// pems are the contents of the files that TLS options name.
type pems struct{ CA, Cert, Key []byte }

func (t *TLS) read() (p pems, err error) {
	for _, file := range []struct {
		option, path string
		to           *[]byte
	}{
		{"ca", t.CA, &p.CA},
		{"cert", t.Cert, &p.Cert},
		{"cert", t.Key, &p.Key},
	} {
		if file.path == "" {
			continue
		}
		if strings.ContainsAny(file.path, "\r\n") || strings.HasPrefix(file.path, "-----BEGIN") {
			return pems{}, fmt.Errorf("%s: holds what seems to be a certificate or a key (not shown): write the path of its file", file.option)
		}
		if *file.to, err = os.ReadFile(file.path); err != nil {
			return pems{}, fmt.Errorf("%s: %w", file.option, err)
		}
	}
	return p, nil
}

func (t *TLS) config() (*tls.Config, error) {
	files, err := t.read()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, // the user asked for it by this name
	}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(files.CA) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		cert, err := tls.X509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, fmt.Errorf("cert: %s with %s: %w", t.Cert, t.Key, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}
