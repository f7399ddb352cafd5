package node

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialer makes connections of a client. After as many failed dials as its pool is large,
// go-redis dials but once a second, and fails everybody else with the last error: on top
// of the breaker that would more than double the time until a Redis that is back is
// noticed. So it does not hear of a failure until it uses the connection.
func dialer(options *redis.Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := redis.NewDialer(options)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return &unreached{err: unsentError{err}, where: where{network, address}}, nil //nolint:nilerr // see above
		}
		return bound(conn), nil
	}
}

// unreached is a connection that could not be made.
type unreached struct {
	err   error
	where where
}

// fail wraps the error, for go-redis unwraps once what setting a connection up comes to.
func (c *unreached) fail() (int, error) { return 0, fmt.Errorf("connecting to redis: %w", c.err) }

func (c *unreached) Read([]byte) (int, error)       { return c.fail() }
func (c *unreached) Write([]byte) (int, error)      { return c.fail() }
func (*unreached) Close() error                     { return nil }
func (c *unreached) LocalAddr() net.Addr            { return c.where }
func (c *unreached) RemoteAddr() net.Addr           { return c.where }
func (*unreached) SetDeadline(time.Time) error      { return nil }
func (*unreached) SetReadDeadline(time.Time) error  { return nil }
func (*unreached) SetWriteDeadline(time.Time) error { return nil }

// where is where it should have led.
type where struct{ network, address string }

func (w where) Network() string { return w.network }
func (w where) String() string  { return w.address }

// go-redis writes a line to standard error for each failed dial, through a logger that
// all its clients share, so at the rate of the requests when Redis is down. The errors
// reach the caller, who says so once.
func init() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
