package browser

import (
	"context"
	"net"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// say is the only method of the service.
const say = "/echo.Echo/Say"

// startService starts a service that speaks gRPC, and returns its address. Each call is passed to a function.
func startService(t *testing.T, called func(http.Header)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Protocols: new(http.Protocols), Handler: connect.NewUnaryHandler(say,
		func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
			called(r.Header())
			return connect.NewResponse(r.Msg), nil
		})}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// startInFront starts a Caddy in front of the service, whose zones are chosen by a header.
func startInFront(t *testing.T, service string) *caddy {
	t.Helper()
	return startCaddy(t, "servers {\nprotocols h1 h2c\n}", `
		rate_limit {
			zone late {
				match header Zone late
				events 0
				window 1h
			}
			zone dear {
				match header Zone dear
				rate 1/1h
				cost 2
			}
			headers off
		}
		reverse_proxy h2c://`+service)
}
