package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"
)

const (
	// DefaultKeyPrefix begins every key unless Options say otherwise.
	DefaultKeyPrefix = "rl"

	// DefaultTimeout bounds one decision unless Options say otherwise.
	DefaultTimeout = 50 * time.Millisecond

	// MaxTimeout is the longest time a decision may take.
	MaxTimeout = time.Minute

	defaultPort = "6379"
)

// Options say where Redis is and how to talk to it.
type Options struct {
	// Address is host:port, host (port 6379), or unix/ and the path of a socket, as in
	// unix//run/redis.sock. Default: 127.0.0.1:6379.
	Address string

	// URL says the same and more in one text: redis://user:password@host:port/db, with
	// rediss for TLS, or unix://user:password@/path?db=0. It excludes Address, Username,
	// Password and DB.
	URL string

	// Username and Password of an ACL user; Password alone for requirepass.
	Username, Password string

	// DB is the number of the database.
	DB int

	// TLS, if not nil, encrypts the connection.
	TLS *TLS

	// KeyPrefix begins every key. It must not contain braces. Default: DefaultKeyPrefix.
	KeyPrefix string

	// Timeout bounds one decision, dialling and waiting for a connection included.
	// Default: DefaultTimeout.
	Timeout time.Duration

	// PoolSize is how many connections there may be. Default: 10 for each CPU.
	PoolSize int

	// Logger is asked for when there is something to say. Default: silence.
	Logger func() *zap.Logger `json:"-"`
}

// TLS says how to encrypt.
type TLS struct {
	// CA is a PEM file with the certificates to trust. Default: the system's.
	CA string

	// Cert and Key are PEM files with the client's certificate and its key.
	Cert, Key string

	// ServerName is what the server's certificate must be for. Default: the host.
	ServerName string

	// InsecureSkipVerify accepts any certificate, and with it anybody in between.
	InsecureSkipVerify bool
}

// client checks the options and turns them into go-redis's. It reads the certificates
// and does not connect.
func (o *Options) client() (*redis.Options, error) {
	switch {
	case o.DB < 0:
		return nil, fmt.Errorf("db must be at least 0, got %d", o.DB)
	case o.Timeout < 0 || o.Timeout > MaxTimeout:
		return nil, fmt.Errorf("timeout must be above 0 and at most %v, got %v", MaxTimeout, o.Timeout)
	case o.PoolSize < 0:
		return nil, fmt.Errorf("pool_size must be at least 1, got %d", o.PoolSize)
	case strings.ContainsAny(o.KeyPrefix, "{}"):
		return nil, fmt.Errorf("key_prefix must not contain braces, got %q", o.KeyPrefix)
	case o.Username != "" && o.Password == "":
		return nil, fmt.Errorf("username %q needs a password", o.Username)
	}
	if o.KeyPrefix == "" {
		o.KeyPrefix = DefaultKeyPrefix
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop
	}
	c, err := o.server()
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		if c.Network == "unix" {
			return nil, errors.New("tls is for TCP, and the address is a unix socket")
		}
		host, _, _ := net.SplitHostPort(c.Addr)
		if c.TLSConfig, err = o.TLS.config(host); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}

	// A reply that got lost may belong to a charge that was carried out, so nothing is
	// sent twice; and no single wait may be longer than a whole decision.
	c.MaxRetries = -1
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
	c.PoolSize = o.PoolSize
	c.DisableIdentity = true
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return c, nil
}

// server is who to talk to, and as whom.
func (o *Options) server() (*redis.Options, error) {
	if o.URL != "" {
		for name, given := range map[string]bool{
			"address": o.Address != "", "username": o.Username != "", "password": o.Password != "", "db": o.DB != 0,
		} {
			if given {
				return nil, fmt.Errorf("url and %s exclude each other", name)
			}
		}
		c, err := redis.ParseURL(o.URL)
		if err != nil {
			// The error quotes the URL, and with it the password.
			return nil, errors.New("url does not parse (not shown, for it may hold a password): " +
				"write redis://user:password@host:port/db, rediss:// for TLS, or unix://user:password@/path?db=0, " +
				"with special characters of the password percent-encoded")
		}
		return c, nil
	}
	c := &redis.Options{Network: "tcp", Username: o.Username, Password: o.Password, DB: o.DB}
	if path, ok := strings.CutPrefix(o.Address, "unix/"); ok {
		if path == "" {
			return nil, fmt.Errorf("address %q has no path: write unix//run/redis.sock", o.Address)
		}
		c.Network, c.Addr = "unix", path
		return c, nil
	}
	var err error
	c.Addr, err = hostPort(o.Address)
	return c, err
}

// hostPort completes an address of TCP.
func hostPort(address string) (string, error) {
	if address == "" {
		return net.JoinHostPort("127.0.0.1", defaultPort), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		// Perhaps just the port is missing.
		host, port, err = net.SplitHostPort(net.JoinHostPort(strings.Trim(address, "[]"), defaultPort))
	}
	n, portErr := strconv.Atoi(port)
	if _, ipErr := netip.ParseAddr(host); ipErr != nil && strings.Contains(host, ":") {
		host = "" // neither an IPv6 address nor a name
	}
	if err != nil || host == "" || strings.ContainsAny(host, "/@ ") || portErr != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("address %q must be host:port or unix//path", address)
	}
	return net.JoinHostPort(host, port), nil
}

func (t *TLS) config(host string) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asked for it by this name
	}
	if c.ServerName == "" {
		c.ServerName = host
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("cert needs a certificate and its key")
	}
	if t.Cert != "" {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cert: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}
