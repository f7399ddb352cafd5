package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// TestFloodOfKeysIntoAFullRedis floods one zone of two Caddys with new keys, until Redis has
// no memory left and on. Meanwhile clients of another zone send their requests: those whom
// Redis knows, some of them used up, and those who are new. Each answer is a decision,
// whatever on_store_error says, and no client gets more than the limit.
func TestFloodOfKeysIntoAFullRedis(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allow", "deny"} {
		for _, algorithm := range []string{"token_bucket", "sliding_window_log"} {
			t.Run(policy+" "+algorithm, func(t *testing.T) { floodFullRedis(t, policy, algorithm) })
		}
	}
}

func floodFullRedis(t *testing.T, policy, algorithm string) {
	const (
		limit   = 5
		clients = 12 // of each sort
		asks    = 8  // of each client, by each Caddy
		most    = 60_000
	)
	var mu sync.Mutex
	arrived := make(map[string]int)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		arrived[r.Header.Get("X-Client")]++
		mu.Unlock()
	}))
	t.Cleanup(upstream.Close)
	redisServer := redistest.Start(t, redistest.WithArgs("--maxmemory", "3mb", "--maxmemory-policy", "noeviction"))
	config := caddyfile("rate_limit {\n store redis {\n address "+redisServer.Addr()+"\n timeout 10s\n}\n instances 2\n on_store_error "+policy+"\n}", `
		metrics /metrics
		handle /flood {
			rate_limit {
				zone flooded {
					key {header.X-Key}
					algorithm token_bucket 1/1d
				}
			}
			respond ok
		}
		handle /login {
			rate_limit {
				zone logins {
					key {header.X-Client}
					algorithm `+algorithm+` 5/1d
				}
			}
			reverse_proxy `+upstream.Listener.Addr().String()+`
		}`)
	fleet := []*server{startCaddy(t, config), startCaddy(t, config)}
	client := newClient(t, "")
	ask := func(s *server, name string) (admitted bool) {
		t.Helper()
		a, err := send(client, s.url("/login"), "X-Client", name)
		switch decided := a.header.Get("RateLimit-Policy") != ""; {
		case err != nil:
			t.Error(err)
		case !decided || a.status != http.StatusOK && a.status != http.StatusTooManyRequests:
			t.Errorf("%s: status %d, decided: %v", name, a.status, decided)
		}
		return a.status == http.StatusOK
	}
	for n := range clients {
		for range limit {
			ask(fleet[n%2], fmt.Sprint("used up ", n))
		}
		ask(fleet[n%2], fmt.Sprint("known ", n))
	}
	var keys atomic.Int64
	done := make(chan struct{})
	var flood sync.WaitGroup
	stop := sync.OnceFunc(func() { close(done); flood.Wait() })
	defer stop()
	for i := range 16 {
		flood.Go(func() {
			for n := keys.Add(1); n < most; n = keys.Add(1) {
				select {
				case <-done:
					return
				default:
				}
				if a, err := send(client, fleet[i%2].url("/flood"), "X-Key", fmt.Sprintf("key-%060d", n)); err != nil || a.status != http.StatusOK || a.header.Get("RateLimit-Policy") == "" {
					t.Errorf("flood: status %d, %v", a.status, err)
					return
				}
			}
		})
	}
	waitFor(t, "Redis to be full", func() bool {
		return storeErrors(t, fleet[0].scrape(client), "oom") > 0 && storeErrors(t, fleet[1].scrape(client), "oom") > 0
	})

	var others sync.WaitGroup
	for _, s := range fleet {
		for n := range clients {
			others.Go(func() {
				for range asks {
					for _, sort := range []string{"used up", "known", "new"} {
						if ask(s, fmt.Sprint(sort, " ", n)) && sort == "used up" {
							t.Error("a client that was used up was admitted")
						}
					}
				}
			})
		}
	}
	others.Wait()
	stop()
	mu.Lock()
	defer mu.Unlock()
	for name, n := range arrived {
		most := limit
		if strings.HasPrefix(name, "new") || strings.HasPrefix(name, "known") && algorithm == "sliding_window_log" {
			// What has no place is decided by shares, and Redis has room again for a moment
			// whenever it frees buffers: then it counts from where it stands.
			most += 2 * (limit / 2)
		}
		if n > most {
			t.Errorf("%s: %d requests at the upstream, want at most %d", name, n, most)
		}
	}
	t.Logf("%d keys, upstream: %v", keys.Load(), arrived)
	for _, s := range fleet {
		text := s.scrape(client)
		if n := storeErrors(t, text, "open"); n > 0 {
			t.Errorf("the breaker has refused %v requests", n)
		}
		for name := range nonzero(t, text) {
			if strings.HasPrefix(name, "store_breaker_state") && !strings.Contains(name, `state="closed"`) {
				t.Errorf("the breaker is not closed: %s", name)
			}
		}
		s.sound(t)
	}
}

// storeErrors is how many decisions the stores did not give for a reason.
func storeErrors(t *testing.T, metrics, kind string) (n float64) {
	t.Helper()
	for name, value := range nonzero(t, metrics) {
		if strings.HasPrefix(name, "store_errors_total") && strings.Contains(name, `kind="`+kind+`"`) {
			n += value
		}
	}
	return n
}
