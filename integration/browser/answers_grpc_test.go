package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// retries is a retry policy as services give it to their clients. Without a pushback it tries again at once.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// attempts counts what happens on the wire.
type attempts struct{ n int }

func (*attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*attempts) HandleConn(context.Context, stats.ConnStats)                       {}

func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, begins := s.(*stats.Begin); begins {
		a.n++
	}
}

// TestGRPCStatus: grpc-go reads code and message. It gives up at once if the wait is long, and the message tells its caller
// how long it is.
func TestGRPCStatus(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, "servers {\nprotocols h1 h2c\n}", `
		rate_limit {
			zone late {
				match header Zone late
				rate 0/1h
			}
			zone dear {
				match header Zone dear
				rate 1/1h
				cost 2
			}
			headers off
		}
		respond "a call that passes" 500`)
	var told strings.Builder
	for _, zone := range []string{"late", "dear"} {
		a := new(attempts)
		conn, err := grpc.NewClient("passthrough:///"+s.site, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(retries), grpc.WithStatsHandler(a))
		must(t, err)
		var trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(t.Context(), "zone", zone)
		err = conn.Invoke(ctx, "/echo.Echo/Say", wrapperspb.String("hello"), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
		conn.Close()
		st := status.Convert(err)
		fmt.Fprintf(&told, "zone %s: %d attempt, %v\n%s\n", zone, a.n, st.Code(), st.Message())
		for _, name := range []string{"content-type", "grpc-retry-pushback-ms", "retry-after"} {
			fmt.Fprintf(&told, "%s: %s\n", name, trailer.Get(name))
		}
		if st.Code() != codes.ResourceExhausted || a.n != 1 || len(st.Details()) > 0 {
			t.Errorf("%s: %v, %d attempts, details %v", zone, err, a.n, st.Details())
		}
	}
	golden.Open(t, "testdata/answers.txtar", "grpc-go").Check(t, told.String())
}
