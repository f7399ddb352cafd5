package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// UnixPrefix begins the address of a unix socket.
const UnixPrefix = "unix/"

// Config is how to talk to the nodes of a store. It is the same for all of them.
type Config struct {
	Username, Password string
	DB                 int
	TLS                *tls.Config // nil: the connection is not encrypted
	PoolSize           int

	// Dial makes the connections; nil: go-redis does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Instead are the addresses by IP of servers, by their addresses by a name that perhaps does not resolve here.
	Instead sync.Map

	// Timeout bounds a call.
	Timeout time.Duration

	// Cluster says that a call can have keys of one slot only.
	Cluster bool

	// Script is what decides. A test may set another while it is in use.
	Script *atomic.Pointer[protocol.Script]

	// ProbeKey names the key that a probe may write, which has a slot if this is a Cluster.
	ProbeKey func(slot uint16) string

	// Done is closed when no node has to be reached any more.
	Done <-chan struct{}
}

// Options returns the options of go-redis for the server at an address, without user and database.
func (c *Config) Options(address string) *redis.Options {
	o := &redis.Options{Network: "tcp", Addr: address, TLSConfig: c.TLS, PoolSize: c.PoolSize}
	if path, ok := strings.CutPrefix(address, UnixPrefix); ok {
		o.Network, o.Addr = "unix", path
	}
	if c.TLS != nil && c.TLS.ServerName == "" { // the name stays if Instead is dialed
		o.TLSConfig = c.TLS.Clone()
		o.TLSConfig.ServerName, _, _ = net.SplitHostPort(address)
	}

	// A reply that got lost may belong to a charge that was carried out, so nothing is
	// sent twice. Each decision brings its deadline; only a connection that is made in the
	// background may take longer, see Node.Connect.
	o.MaxRetries = -1
	o.MaxIdleConns = -1 // those that were used are links
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	longest := max(c.Timeout, connectTimeout)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = longest, longest, longest, longest
	o.PipelinePoolSize = -1 // pipelines take their connections from the one pool
	o.DisableIdentity = true
	o.Protocol = 2 // for pushed messages, which RESP3 adds, go-redis looks before and after each command
	o.Dialer = c.dialer(o)
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

// dialer makes connections of a client. After as many failed dials as its pool is large,
// go-redis dials only once a second, and fails all other calls with the last error. On top of
// the breaker that would more than double the time until a Redis that is back is noticed. So
// go-redis does not learn of a failure until it uses the connection.
func (c *Config) dialer(options *redis.Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = redis.NewDialer(options)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		var unresolved *net.DNSError
		if other, known := c.Instead.Load(address); known && errors.As(err, &unresolved) {
			conn, err = dial(ctx, network, other.(string))
		}
		if err != nil {
			nowhere, _ := net.Pipe()
			return &unreached{nowhere, unsentError{err}}, nil // see above
		}
		return bound(conn), nil
	}
}

// unreached is a connection that could not be made.
type unreached struct {
	net.Conn
	err error
}

// fail wraps the error, because go-redis unwraps the error of setting up a connection once.
func (c *unreached) fail() (int, error) { return 0, fmt.Errorf("connecting to redis: %w", c.err) }

func (c *unreached) Read([]byte) (int, error)  { return c.fail() }
func (c *unreached) Write([]byte) (int, error) { return c.fail() }

// go-redis writes a line to standard error for each failed dial, through a logger that
// all its clients share: at the rate of the requests when Redis is down. The errors reach the
// caller anyway, which logs them once.
func init() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
