package redisstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
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

	// MinTimeout and MaxTimeout bound the time a decision may take.
	MinTimeout = time.Millisecond
	MaxTimeout = time.Minute

	// DefaultDenyCache is how long a refusal is remembered unless Options say otherwise, and
	// MaxDenyCache the longest.
	DefaultDenyCache = time.Second
	MaxDenyCache     = time.Minute

	// MaxPoolSize bounds the connections: go-redis makes room for them all at once.
	MaxPoolSize = 10_000

	defaultHost = "127.0.0.1"
	defaultPort = "6379"

	unixPrefix = "unix/"
)

// Options say where Redis is and how to talk to it.
type Options struct {
	// Address is host:port, host (port 6379), or unix/ and the path of a socket, as in
	// unix//run/redis.sock. Default: 127.0.0.1:6379.
	Address string

	// URL says the same and more in one text: redis://user:password@host:port/db, with
	// rediss for TLS, or unix://user:password@/path?db=0. It takes no other parameters. It
	// excludes Address, Username, Password and DB.
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

	// PoolSize is how many connections there may be, at most MaxPoolSize. Default: 10 for each CPU.
	PoolSize int

	// DenyCache is how long a refusal is remembered at most, so that a client that keeps
	// asking does not keep Redis busy; at most MaxDenyCache. Below 0: not at all. Default:
	// DefaultDenyCache.
	DenyCache time.Duration

	// Instance names this process among those that share the store. Default: a name of its
	// own for each store.
	Instance string `json:"-"`

	// Logger is asked for when there is something to say. Default: silence.
	Logger func() *zap.Logger `json:"-"`
}

// Complete checks the options and returns them with the URL taken apart and defaults
// filled in, so that what means the same is the same. It reads no files.
func (o Options) Complete() (Options, error) {
	if o.URL != "" {
		if err := o.takeURL(); err != nil {
			return Options{}, err
		}
	}
	switch {
	case o.DB < 0:
		return Options{}, fmt.Errorf("db must be at least 0, got %d", o.DB)
	case o.Timeout != 0 && (o.Timeout < MinTimeout || o.Timeout > MaxTimeout):
		return Options{}, fmt.Errorf("timeout must be from %v to %v, got %v", MinTimeout, MaxTimeout, o.Timeout)
	case o.DenyCache > MaxDenyCache:
		return Options{}, fmt.Errorf("deny_cache must be at most %v, got %v", MaxDenyCache, o.DenyCache)
	case o.PoolSize < 0 || o.PoolSize > MaxPoolSize:
		return Options{}, fmt.Errorf("pool_size must be from 1 to %d, got %d", MaxPoolSize, o.PoolSize)
	case strings.ContainsAny(o.KeyPrefix, "{}"):
		return Options{}, fmt.Errorf("key_prefix must not contain braces, got %q", o.KeyPrefix)
	case o.Username != "" && o.Password == "":
		return Options{}, fmt.Errorf("username %q needs a password", o.Username)
	}
	var err error
	if o.Address, err = completeAddress(o.Address); err != nil {
		return Options{}, err
	}
	o.KeyPrefix = cmp.Or(o.KeyPrefix, DefaultKeyPrefix)
	o.DenyCache = max(-1, cmp.Or(o.DenyCache, DefaultDenyCache))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, 10*runtime.GOMAXPROCS(0))
	if o.Logger == nil {
		o.Logger = zap.NewNop
	}
	if o.TLS != nil {
		if strings.HasPrefix(o.Address, unixPrefix) {
			return Options{}, errors.New("tls is for TCP, and the address is a unix socket")
		}
		t := *o.TLS // the caller's stays as it is
		if (t.Cert == "") != (t.Key == "") {
			return Options{}, errors.New("tls: cert needs a certificate and its key")
		}
		host, _, _ := net.SplitHostPort(o.Address)
		t.ServerName = cmp.Or(t.ServerName, host)
		o.TLS = &t
	}
	return o, nil
}

// Identity tells a store from those of other options: by what the options mean, and by
// what the files hold that they name, so that a renewed certificate makes another
// store. It is a hash, for it covers passwords.
func (o Options) Identity() (string, error) {
	completed, err := o.Complete()
	if err != nil {
		return "", err
	}
	all := struct {
		Options Options
		Files   pems
	}{Options: completed}
	if completed.TLS != nil {
		if all.Files, err = completed.TLS.read(); err != nil {
			return "", fmt.Errorf("tls: %w", err)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// client completes the options and turns them into go-redis's. It reads the
// certificates and does not connect.
func (o *Options) client() (*redis.Options, error) {
	completed, err := o.Complete()
	if err != nil {
		return nil, err
	}
	*o = completed
	c := &redis.Options{Network: "tcp", Addr: o.Address, Username: o.Username, Password: o.Password, DB: o.DB}
	if path, ok := strings.CutPrefix(o.Address, unixPrefix); ok {
		c.Network, c.Addr = "unix", path
	}
	if o.TLS != nil {
		if c.TLSConfig, err = o.TLS.config(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}

	// A reply that got lost may belong to a charge that was carried out, so nothing is
	// sent twice. Each decision brings its deadline; only a connection that is made in the
	// background may take longer, see Store.connect.
	c.MaxRetries = -1
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	longest := max(o.Timeout, connectTimeout)
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = longest, longest, longest, longest
	c.PoolSize = o.PoolSize
	c.Dialer = dialer(c)
	c.DisableIdentity = true
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return c, nil
}
