package browser

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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

// attempts records what happens on the wire.
type attempts struct {
	mu       sync.Mutex
	begun    []time.Time
	trailers []metadata.MD
}

func (*attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*attempts) HandleConn(context.Context, stats.ConnStats)                       {}

func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch s := s.(type) {
	case *stats.Begin:
		a.begun = append(a.begun, time.Now())
	case *stats.InTrailer:
		a.trailers = append(a.trailers, s.Trailer)
	}
}

// dial returns a client of grpc-go.
func dial(t *testing.T, address string, a *attempts) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(retries), grpc.WithStatsHandler(a))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// call calls the service in a zone.
func call(t *testing.T, conn *grpc.ClientConn, zone string) error {
	t.Helper()
	reply := new(wrapperspb.StringValue)
	err := conn.Invoke(metadata.AppendToOutgoingContext(t.Context(), "zone", zone), say, wrapperspb.String("hello"), reply)
	if err == nil && reply.GetValue() != "hello" {
		t.Fatalf("the service says %q", reply.GetValue())
	}
	return err
}

// TestGRPCStatus: grpc-go reads code and message. It gives up at once if the wait is long, and the message tells its caller
// how long it is.
func TestGRPCStatus(t *testing.T) {
	t.Parallel()
	s := startInFront(t, startService(t, func(http.Header) { t.Error("a refused call reaches the service") }))
	var told strings.Builder
	for _, c := range []struct {
		zone string
		code codes.Code
	}{{"late", codes.ResourceExhausted}, {"dear", codes.ResourceExhausted}} {
		a := new(attempts)
		err := call(t, dial(t, s.site, a), c.zone)
		st := status.Convert(err)
		if st.Code() != c.code {
			t.Fatalf("%s: %v", c.zone, err)
		}
		fmt.Fprintf(&told, "zone %s: %d attempt, %v\n%s\n", c.zone, len(a.begun), st.Code(), st.Message())
		for _, name := range []string{"content-type", "grpc-retry-pushback-ms", "retry-after"} {
			fmt.Fprintf(&told, "%s: %s\n", name, a.trailers[0].Get(name))
		}
		if len(a.begun) != 1 || len(st.Details()) > 0 {
			t.Errorf("%s: %d attempts, details %v", c.zone, len(a.begun), st.Details())
		}
	}
	golden.Open(t, "testdata/answers.txtar", "grpc-go").Check(t, told.String())
}
