//go:build deep

package queues_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestWaitsBeyondTheServersTimeout: Caddy warns of them at load. A request that has waited too long is forwarded, and its
// client gets no answer.
func TestWaitsBeyondTheServersTimeout(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntimeouts {\nwrite 1s\n}\n}",
		"log\n"+harness.Limited("late", "algorithm sliding_window_log 1/2s\nmax_wait 3s", "", "respond ok")))
	s.AwaitLog(`"level":"warn"`, `"zone":"late"`, "requests may wait here for 3s, but the server has 1s for them (timeouts write)",
		"set write, in JSON write_timeout, to more than 3s, or max_wait to less than 1s")
	patient.Until(t, "a client that gets no answer", func() bool {
		_, _ = harness.Send(harness.NewClient(t, ""), s.URL("/late")) // it uses the limit up, and soon the next one waits for two seconds
		_, err := harness.Send(harness.NewClient(t, ""), s.URL("/late"))
		return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	})
	patient.Until(t, "a request that was forwarded too late", func() bool {
		lines, _ := s.Lines()
		for _, l := range lines {
			var access struct {
				Status   int
				Duration float64
			}
			if strings.HasPrefix(l.Logger, "http.log.access") && json.Unmarshal([]byte(l.Text), &access) == nil && access.Status == 200 && access.Duration > 1 {
				return true
			}
		}
		return false
	})
}
