//go:build deep

package limits_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestReloadKeepsCounters reloads under load: no request fails, and both stores admit exactly
// their limit over all configs together.
func TestReloadKeepsCounters(t *testing.T) {
	t.Parallel()
	const (
		limit   = 2000 // of each zone
		reloads = 8
		clients = 16
	)
	site := func(version string) string {
		return harness.Caddyfile("", `
			header X-Version `+version+`
			handle /memory {
				rate_limit {
					zone memory {
						events 2000
						window 1h
					}
				}
				respond ok
			}
			handle /redis {
				rate_limit {
					zone redis {
						events 2000
						window 1h
					}
					store redis {
						address {$REDIS}
						timeout 10s
					}
					on_store_error deny
				}
				respond ok
			}`)
	}
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, site("0"), "REDIS="+redisServer.Addr())
	paths := []string{"/memory", "/redis"}
	var admitted, refused [2]atomic.Int64
	var versions sync.Map
	done := make(chan struct{})
	fail := make(chan error, clients)
	var group sync.WaitGroup
	for range clients {
		client := harness.NewClient(t, "")
		group.Go(func() {
			for i := 0; ; i = 1 - i {
				select {
				case <-done:
					return
				default:
				}
				a, err := harness.SendAcross(client, s.URL(paths[i]))
				if err != nil {
					fail <- err
					return
				}
				switch a.Status {
				case http.StatusOK:
					admitted[i].Add(1)
				case http.StatusTooManyRequests:
					refused[i].Add(1)
				default:
					t.Errorf("%s: status %d", paths[i], a.Status)
				}
				versions.Store(a.Header.Get("X-Version"), true)
			}
		})
	}
	// The reloads are spread over the time in which requests are admitted.
	for n := range int64(reloads) {
		patient.Until(t, "requests to be admitted", func() bool {
			return admitted[0].Load() > (n+1)*limit/(reloads+1) || len(fail) > 0
		})
		s.MustLoad(site(string(rune('1' + n))))
	}
	patient.Until(t, "both zones to refuse", func() bool {
		return refused[0].Load() > 200 && refused[1].Load() > 200 || len(fail) > 0
	})
	close(done)
	group.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
	seen := 0
	versions.Range(func(_, _ any) bool { seen++; return true })
	for i, path := range paths {
		t.Logf("%s: %d admitted, %d refused under %d configs", path, admitted[i].Load(), refused[i].Load(), seen)
		if admitted[i].Load() != limit {
			t.Errorf("%s: %d admitted, want %d", path, admitted[i].Load(), limit)
		}
	}
	if seen != reloads+1 {
		t.Errorf("answers came from %d configs, want %d", seen, reloads+1)
	}
	s.Sound(t)

	// No config leaves connections behind.
	s.MustLoad(harness.Caddyfile("", "respond ok"))
	patient.Until(t, "all connections to Redis to be closed", func() bool {
		clients, err := redisServer.Admin().ClientList(t.Context()).Result()
		return err == nil && strings.Count(clients, "\n") == 1 // only the admin client's
	})
	s.Stop()
}
