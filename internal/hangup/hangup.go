// Package hangup sees that the client of a request has left that waits. The request's context ends when the client leaves.
// With HTTP/1 that works only once the request's body has been read, because net/http watches the connection only then.
// Until then the socket is watched here. Nothing is read from it, because the body is for the next handlers.
package hangup

import (
	"context"
	"net"
	"net/http"
	"os"
	"reflect"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// connection is the key of a request's connection in its context.
type connection struct{}

// Expose has the server of a handler that is provisioned put its connections into the contexts of requests.
func Expose(ctx caddy.Context) {
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && seesHangUp {
		server.RegisterConnContext(withConnection)
	}
}

// withConnection puts a request's connection into its context, once.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if ctx.Value(connection{}) != nil { // another handler of the server has exposed it
		return ctx
	}
	return context.WithValue(ctx, connection{}, c)
}

// Watch begins to watch the client of a request. It returns a channel that is closed when the client has left, which is nil if
// there is nothing to watch, and what ends the watch.
func Watch(r *http.Request) (left <-chan struct{}, forget func()) {
	if !seesHangUp || r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody {
		return nil, func() {}
	}
	conn, _ := r.Context().Value(connection{}).(net.Conn)
	// The watch has a descriptor of its own, so that it does not disturb reads from the connection.
	files, ok := socketOf(conn).(interface{ File() (*os.File, error) })
	if !ok {
		return nil, func() {}
	}
	file, err := files.File()
	if err != nil {
		return nil, func() {}
	}
	gone := make(chan struct{})
	go watch(file, gone)
	return gone, func() { _ = file.Close() }
}

// watch returns when the client has left or the watch has ended. The runtime calls the function
// again when something has happened to the socket.
func watch(file *os.File, gone chan<- struct{}) {
	left := false
	raw, err := file.SyscallConn()
	if err == nil {
		_ = raw.Read(func(socket uintptr) bool {
			left = hungUp(socket)
			return left
		})
	}
	if left {
		close(gone)
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
