//go:build deep

package costs_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// lateSite has a limit of 100. Each request takes one, unless its response says 50, or is one
// that does not count. A cost of 0 shows what is left.
func lateSite(store string) string {
	return harness.Caddyfile("", `
		rate_limit {
			zone late {
				key         {header.X-Client}
				algorithm   fixed_window
				events      100
				window      year
				cost        {header.X-Cost} 1
				charge {
					header X-Tokens-Used
					status 200
				}
			}
			`+store+`
		}
		reverse_proxy {$UPSTREAM}`)
}

// late answers when its gate opens, even if the client has left; or it begins to answer, and goes
// on when the gate opens.
func late(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	gate, streams := r.Header.Get("X-Gate"), r.Header.Get("X-Stream") != ""
	if gate != "" && !streams {
		<-b.Gate(gate)
	}
	if used := r.Header.Get("X-Use"); used != "" {
		w.Header().Set("X-Tokens-Used", used)
	}
	if r.Header.Get("X-Fail") != "" {
		w.WriteHeader(http.StatusTeapot)
	}
	_, _ = io.WriteString(w, "ok")
	if gate != "" && streams {
		_ = http.NewResponseController(w).Flush()
		<-b.Gate(gate)
	}
}

// AwaitLeft waits until a client has that much left on the front page.
func awaitLeft(t *testing.T, s *harness.Server, what, name string, want int64) {
	t.Helper()
	awaitLeftAt(t, s, what, "/", name, want)
}

// awaitLeftAt waits until a client has that much left on a path.
func awaitLeftAt(t *testing.T, s *harness.Server, what, path, name string, want int64) {
	t.Helper()
	client := harness.NewClient(t, "")
	patient.UntilEqual(t, what+": what is left", func() int64 {
		a, err := harness.Send(client, s.URL(path), "X-Client", name, "X-Cost", "0")
		if err != nil {
			return -1 // the connection was made to a server that a reload has just ended
		}
		q, _, err := harness.RateLimit(a.Header)
		if err != nil {
			t.Fatal(err)
		}
		return q.Remaining
	}, want)
}

// TestLateChargesAfterReload: adjustments of requests that are in progress during a reload are
// made.
func TestLateChargesAfterReload(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		b := harness.StartBackend(t, late)
		config := lateSite(store)
		s := harness.StartCaddy(t, config, b.Variable())
		answers := make(chan int, 2)
		for _, header := range [][]string{{"X-Use", "50"}, {"X-Fail", "1"}} {
			go func() {
				a, _ := harness.Send(harness.NewClient(t, ""), s.URL("/"), append(header, "X-Client", "me", "X-Gate", "reload")...)
				answers <- a.Status
			}()
		}
		b.AwaitInside(t, 2)
		awaitLeft(t, s, "while both are under way", "me", 98)
		// The zone stays, and the handler does not.
		other := strings.Replace(config, "rate_limit {", "rate_limit {\nstatus 420\n", 1)
		s.MustLoad(other)
		b.Open("reload")
		if first, second := <-answers, <-answers; first+second != http.StatusOK+http.StatusTeapot {
			t.Fatalf("answers %d and %d", first, second)
		}
		awaitLeft(t, s, "when both are over", "me", 50)
	})
}
