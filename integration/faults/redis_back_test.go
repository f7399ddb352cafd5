package faults_test

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// breakerState is the state of the breaker in front of the only Redis of a Caddy.
func breakerState(s *harness.Server, client *http.Client) string {
	s.T.Helper()
	for name := range harness.Nonzero(s.T, s.Scrape(client)) {
		if labels, ok := strings.CutPrefix(name, "store_breaker_state{"); ok {
			_, state, _ := strings.Cut(labels, `state="`)
			state, _, _ = strings.Cut(state, `"`)
			return state
		}
	}
	return ""
}

// TestRedisBackWithoutARequest: a Caddy finds out that Redis is back without a request that
// fails. So all of the first requests are decided, however many come at once.
func TestRedisBackWithoutARequest(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct {
		timeout    string // a frozen Redis has to be noticed by timeouts
		begin, end func(*redistest.Server)
	}{
		"killed": {"10s", (*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {"5s", (*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redisServer := redistest.Start(t)
			s := harness.StartCaddy(t, harness.Caddyfile("", `
				route {
					metrics /metrics
					rate_limit {
						zone all {
							events 1000000
							window 1h
						}
						store redis {
							address {$REDIS}
							timeout `+outage.timeout+`
						}
						on_store_error deny
					}
					respond ok
				}`), "REDIS="+redisServer.Addr())
			client := harness.NewClient(t, "")
			patient.Until(t, "a decision", func() bool { return s.Get(client, "/").Status == http.StatusOK })

			outage.begin(redisServer)
			var clients sync.WaitGroup
			for range 16 {
				clients.Go(func() {
					for breakerState(s, client) == "closed" {
						if _, err := harness.Send(client, s.URL("/")); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			clients.Wait()
			if a := s.Get(client, "/"); a.Status != http.StatusServiceUnavailable {
				t.Fatalf("while Redis is away: status %d", a.Status)
			}
			outage.end(redisServer)

			// Half-open is as good as closed: a request that comes then waits for the result.
			patient.Until(t, "the breaker not to be open", func() bool { return breakerState(s, client) != "open" })
			var mu sync.Mutex
			statuses := make(map[int]int)
			requests, together := make(chan struct{}, 50), make(chan struct{})
			for range 16 {
				clients.Go(func() {
					<-together
					for range requests {
						a, err := harness.Send(client, s.URL("/"))
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						statuses[a.Status]++
						mu.Unlock()
					}
				})
			}
			for range 50 {
				requests <- struct{}{}
			}
			close(requests)
			close(together)
			clients.Wait()
			if want := map[int]int{http.StatusOK: 50}; !maps.Equal(statuses, want) {
				t.Errorf("the first requests were answered %v, want %v", statuses, want)
			}
		})
	}
}
