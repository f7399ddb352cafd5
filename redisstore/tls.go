package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// TLS encrypts the connections to Redis, and says which servers to trust.
type TLS struct {
	// A PEM file with the CA certificates to trust. Default: of the system.
	CA string `json:"ca,omitempty" syntax:"<file>" default:"=of the system"`

	// A PEM file with the client's certificate. Requires key. Default: none.
	Cert string `json:"cert,omitempty" syntax:"<file>" default:"=none"`

	// A PEM file with the key of cert. Default: none.
	Key string `json:"key,omitempty" syntax:"<file>" default:"=none"`

	// The name that the certificate of every server must have. Default: the host of the
	// server's address.
	ServerName string `json:"server_name,omitempty" syntax:"<name>" default:"=the host of the address"`

	// Accepts any certificate. Then anyone on the network path can read and change the
	// traffic. Default: false.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty" default:"=false"`
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
