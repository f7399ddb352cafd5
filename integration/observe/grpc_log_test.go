package observe_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestRefusedCallIsLogged: the refusal of a call of gRPC has status 200, as gRPC wants it. The access log and the metrics still say that it
// is one.
func TestRefusedCallIsLogged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		log {
			output file `+file+`
			format json
		}
		metrics /metrics
		rate_limit /service/* {
			zone calls {
				events 0
				window 1h
			}
		}
		respond /service/* ok`))
	client := harness.NewClient(t, "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL("/service/Method"), strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	metrics := s.Scrape(client)
	for _, line := range []string{`caddy_rate_limit_declined_requests_total{zone="calls"} 1`, `caddy_rate_limit_decisions_total{outcome="limited",zone="calls"} 1`} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	s.Stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Status int `json:"status"`
		Limit  struct {
			Outcome string `json:"outcome"`
			Code    int    `json:"grpc_status"`
		} `json:"rate_limit"`
	}
	first, _, _ := bytes.Cut(text, []byte("\n")) // the second one is that of the metrics
	if err := json.Unmarshal(first, &entry); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if response.StatusCode != 200 || entry.Status != 200 || entry.Limit.Outcome != "limited" || entry.Limit.Code != 8 {
		t.Errorf("status %d, and the log has %s", response.StatusCode, text)
	}
}
