//go:build deep

package floods_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestRequestsOfAnyCostHoldUpNobody: requests of a huge cost in a log, each with a new key, take
// Redis no longer than other requests. So a used-up limit of another zone lets nothing pass while
// they are decided.
func TestRequestsOfAnyCostHoldUpNobody(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone tokens {
				match path /tokens
				key {header.X-Api-Key}
				rate 50000000/1h
				cost {header.X-Tokens} 1
			}
			zone other {
				match path /other
				key {header.X-Api-Key}
				algorithm token_bucket 5/1h
			}
			store redis {
				address {$REDIS}
				timeout 5s
				deny_cache off
			}
			on_store_error allow
		}
		respond ok`), "REDIS="+redisServer.Addr())
	client := harness.NewClient(t, "")
	if got := s.Admitted(client, 8, "/other", "X-Api-Key", "used up"); got != 5 {
		t.Fatalf("%d admitted, want 5", got)
	}
	var costly, others sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if a, err := harness.Send(client, s.URL("/other"), "X-Api-Key", "used up"); err != nil || a.Status != http.StatusTooManyRequests {
					t.Errorf("the client that is used up was answered %d: %v", a.Status, err)
					return
				}
			}
		})
	}
	for i := range 8 {
		costly.Go(func() {
			for _, cost := range []string{"1000000", "49000000"} {
				a, err := harness.Send(client, s.URL("/tokens"), "X-Api-Key", "key"+strconv.Itoa(i), "X-Tokens", cost)
				if err != nil || a.Status != http.StatusOK {
					t.Errorf("cost %s was answered %d: %v", cost, a.Status, err)
				}
			}
		})
	}
	costly.Wait()
	close(done)
	others.Wait()
	s.Sound(t)
}
