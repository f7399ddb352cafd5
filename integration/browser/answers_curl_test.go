package browser

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestGRPCWeb: a client of gRPC-Web reads code, message and pushback in the body.
func TestGRPCWeb(t *testing.T) {
	t.Parallel()
	s := startInFront(t, startService(t, func(http.Header) {}))
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, "http://"+s.site+say, connect.WithGRPCWeb())
	ask := func(zone string) error {
		r := connect.NewRequest(wrapperspb.String("hello"))
		r.Header().Set("Zone", zone)
		_, err := client.CallUnary(t.Context(), r)
		return err
	}
	if err := ask("none"); err != nil {
		t.Fatal(err)
	}
	err := ask("twelve")
	var refusal *connect.Error
	if !errors.As(err, &refusal) || refusal.Code() != connect.CodeResourceExhausted {
		t.Fatalf("refused with %v", err)
	}
	told := fmt.Sprintf("%v\n%s\npushback: %s ms\n", refusal.Code(), refusal.Message(), refusal.Meta().Get("Grpc-Retry-Pushback-Ms"))
	golden.Open(t, "testdata/answers.txtar", "gRPC-Web").Check(t, told)
}

// TestCurl: what each caller gets on the wire.
func TestCurl(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, "", `
		rate_limit {
			zone quota {
				match header Zone quota
				events 0
				window 12s
			}
			zone flood {
				match header Zone flood
				events  0
				window  12s
				headers off
			}
			on_limit problem
		}
		rate_limit {
			zone bare {
				events 0
				window 12s
			}
		}
		respond ok`)
	var told strings.Builder
	for _, arguments := range []string{
		"-H Zone:bare",
		"-H Zone:quota",
		"-H Zone:flood",
		"-I -H Zone:quota",
		"-0 -H Zone:quota",
		"-d x -H Content-Type:application/grpc",
		"-d x -H Content-Type:application/grpc-web-text",
	} {
		output, err := exec.Command("curl", append([]string{"-si", "--max-time", "60", "http://" + s.site}, strings.Fields(arguments)...)...).Output()
		if err != nil {
			t.Fatalf("curl %s: %v", arguments, err)
		}
		fmt.Fprintf(&told, "$ curl %s\n", arguments)
		for line := range strings.Lines(string(output)) {
			if line = strings.TrimRight(line, "\r\n"); !strings.HasPrefix(line, "Date: ") {
				fmt.Fprintln(&told, line)
			}
		}
		fmt.Fprintln(&told)
	}
	golden.Open(t, "testdata/answers.txtar", "curl").Check(t, told.String())
}

// TestCurlRetries: curl waits as long as Retry-After says.
func TestCurlRetries(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, "", `
		rate_limit {
			zone soon {
				rate 1/1s
			}
		}
		respond ok`)
	for refused := false; !refused; { // on a busy machine a request may pass at once
		begun := time.Now()
		output, err := exec.Command("curl", "-s", "--retry", "9", "-w", "%{http_code} %{num_retries}", "-o", filepath.Join(t.TempDir(), "body"), "http://"+s.site).Output()
		if err != nil {
			t.Fatal(err)
		}
		status, retries, _ := strings.Cut(string(output), " ")
		if refused = retries != "0"; status != "200" || refused && time.Since(begun) < time.Second {
			t.Errorf("status %s after %s retries and %v", status, retries, time.Since(begun))
		}
	}
}
