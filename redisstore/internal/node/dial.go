package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

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
