//go:build deep

package cli_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestWatchTheFleet: watch shows a refusal of another instance, whose admin endpoint it does not ask, and says which one it is.
func TestWatchTheFleet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	pair := harness.StartPair(t, harness.Caddyfile("", `
		rate_limit {
			zone shared {
				key {query.k}
				rate 1/1h
			}
			`+harness.Redis(server.Addr())+`
		}
		respond ok`))
	client := harness.NewClient(t, "")
	patient.Until(t, "two heartbeats", func() bool {
		return server.Admin().ZCard(t.Context(), "rl:instances").Val() == 2
	})
	// Each asks about the number of instances with its own heartbeat.
	patient.Until(t, "the first to know of the second", func() bool {
		output, err := pair[0].RateLimit("instances")
		return err == nil && regexp.MustCompile(`reports `).MatchString(output)
	})
	for _, server := range pair { // the second is another instance for the one that is asked
		watchUntilRefused(t, pair[0], func() error {
			_, err := harness.Send(client, server.URL("/?k=there"))
			return err
		}, regexp.MustCompile(`\(process \d+\) .*limited .*there`))
	}
}

// watchUntilRefused watches a fleet until a request is refused, and compares what is printed.
func watchUntilRefused(t *testing.T, asked *harness.Server, send func() error, want *regexp.Regexp) {
	t.Helper()
	type result struct {
		output string
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		output, err := asked.RateLimit("watch", "shared", "--fleet", "--outcome", "limited", "-n", "1")
		ended <- result{output, err}
	}()
	for {
		if err := send(); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-ended:
			if r.err != nil || !want.MatchString(r.output) {
				t.Errorf("%v\n%s", r.err, r.output)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
