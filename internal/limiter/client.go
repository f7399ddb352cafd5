package limiter

import (
	"context"
	"net"
	"net/http"
	"os"
	"reflect"
	"syscall"
)

// client is the client of a request that waits. The request's context ends when the client leaves.
// With HTTP/1 that works only once the request's body has been read, because net/http watches the
// connection only then. Until then the socket is watched here. Nothing is read from it, because
// the body is for the next handlers.
type client struct {
	left   chan struct{}
	socket *os.File // nil if there is nothing to watch
}

// connection is the key of a request's connection in its context.
type connection struct{}

// CanSeeHangUps reports whether this system shows that a client has left before everything that
// the client has sent is read.
func CanSeeHangUps() bool { return seesHangUp }

// WithConnection puts a request's connection into its context, for requests that wait. It is for
// [caddyhttp.Server.RegisterConnContext].
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, c)
}

// watchClient begins to watch the client of a request.
func watchClient(r *http.Request) *client {
	c := &client{left: make(chan struct{})}
	if !seesHangUp || r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody {
		return c
	}
	conn, _ := r.Context().Value(connection{}).(net.Conn)
	// The watch has a descriptor of its own, so that it does not disturb reads from the connection.
	files, ok := socketOf(conn).(interface{ File() (*os.File, error) })
	if !ok {
		return c
	}
	file, err := files.File()
	if err != nil {
		return c
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return c
	}
	c.socket = file
	go c.watch(raw)
	return c
}

// watch returns when the client has left or the watch has ended. The runtime calls the function
// again when something has happened to the socket.
func (c *client) watch(raw syscall.RawConn) {
	gone := false
	_ = raw.Read(func(socket uintptr) bool {
		gone = hungUp(socket)
		return gone
	})
	if gone {
		close(c.left)
	}
}

// forget ends the watch.
func (c *client) forget() {
	if c.socket != nil {
		_ = c.socket.Close()
	}
}

// socketOf returns the socket beneath the wrappers of listeners, such as TLS and the PROXY protocol,
// which have methods for that. Other wrappers embed what they wrap.
func socketOf(conn net.Conn) net.Conn {
	for range 8 {
		switch c := conn.(type) {
		case *net.TCPConn, *net.UnixConn:
			return conn
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		case interface{ Raw() net.Conn }:
			conn = c.Raw()
		default:
			value := reflect.Indirect(reflect.ValueOf(conn))
			if value.Kind() != reflect.Struct {
				return nil
			}
			embedded := value.FieldByName("Conn")
			if !embedded.IsValid() || !embedded.CanInterface() {
				return nil
			}
			conn, _ = embedded.Interface().(net.Conn)
		}
	}
	return nil
}
