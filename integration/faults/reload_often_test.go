//go:build deep

package faults_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestReloadOften replaces the config every 200 ms under load, with limits in Redis and in memory. The handlers of all configs
// share one Redis client, goroutines do not pile up, no request fails, and the limits hold over all configs together.
// TestNothingOutlivesConfig looks at the memory.
func TestReloadOften(t *testing.T) {
	patient.BesideOthers(t)
	const (
		limit   = 100_000 // more than the clients can use meanwhile
		small   = 1000
		clients = 9
		pool    = 10 // connections that the one client may have; fewer than there are reloads
		lasts   = 4 * time.Second
	)
	zone := func(path string, limit int, store string) string {
		return "handle " + path + " {\n rate_limit {\n" + store + " zone " + path[1:] + " {\n events " + strconv.Itoa(limit) + "\n window 1h\n }\n }\n respond ok\n}\n"
	}
	config := func(version int) string {
		return harness.Caddyfile(`
	grace_period 5s
	rate_limit {
		store redis {
			address {$REDIS}
			timeout 10s
			pool_size `+strconv.Itoa(pool)+`
		}
		on_store_error deny
	}`, "header X-Version "+strconv.Itoa(version)+"\n"+zone("/large", limit, "")+zone("/small", small, "")+zone("/memory", small, "store memory\n"))
	}
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, config(0), "REDIS="+redisServer.Addr())
	paths := []string{"/large", "/small", "/memory"}
	var admitted, refused [3]atomic.Int64
	done := make(chan struct{})
	var group sync.WaitGroup
	stop := sync.OnceFunc(func() { close(done); group.Wait() })
	t.Cleanup(stop)
	for n := range clients {
		client := harness.NewClient(t, "")
		group.Go(func() {
			ticker := time.NewTicker(15 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticker.C:
				}
				switch a, err := harness.SendAcross(client, s.URL(paths[n%3])); {
				case err != nil:
					t.Error(err)
				case a.Status == http.StatusOK:
					admitted[n%3].Add(1)
				case a.Status == http.StatusTooManyRequests:
					refused[n%3].Add(1)
				default:
					t.Errorf("status %d", a.Status)
				}
			}
		})
	}
	patient.Until(t, "requests to be admitted", func() bool { return admitted[0].Load() > 200 })
	goroutines, made := countGoroutines(s, t), connectionsMade(t, redisServer)
	reloads, slowest := 0, time.Duration(0)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); time.Since(begun) < lasts; <-ticker.C {
		start := time.Now()
		reloads++
		s.MustLoad(config(reloads))
		slowest = max(slowest, time.Since(start))
	}
	during := int64(0)
	for i := range paths {
		during += admitted[i].Load() + refused[i].Load()
	}
	// Everything that belongs to old configs is gone soon after the last one.
	now := 0
	patient.Until(t, "goroutines to end", func() bool {
		now = countGoroutines(s, t)
		return now <= goroutines+10
	})
	more := connectionsMade(t, redisServer) - made
	t.Logf("%d reloads, the slowest of %v, under %d requests: goroutines %d and then %d; %d connections to Redis made after the first",
		reloads, slowest.Round(time.Millisecond), during, goroutines, now, more)
	// A client of its own for each config would make at least one connection for each reload.
	if more > pool {
		t.Errorf("%d connections were made during %d reloads, want at most %d", more, reloads, pool)
	}
	patient.Until(t, "the small limits to be used up", func() bool { return refused[1].Load() > 50 && refused[2].Load() > 50 })
	stop()
	for i := 1; i <= 2; i++ {
		if got := admitted[i].Load(); got != small {
			t.Errorf("%s: %d admitted of a limit of %d, over %d configs", paths[i], got, small, reloads+1)
		}
	}
	s.Sound(t)
	s.MustLoad(harness.Caddyfile("", "respond ok"))
	patient.Until(t, "all connections to Redis to be closed", func() bool {
		open, err := redisServer.Admin().ClientList(t.Context()).Result()
		return err == nil && strings.Count(open, "\n") == 1 // only the admin client's
	})
}

// connectionsMade returns how many connections a Redis has ever accepted.
func connectionsMade(t *testing.T, redisServer *redistest.Server) int {
	t.Helper()
	info, err := redisServer.Admin().InfoMap(context.Background(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(info["Stats"]["total_connections_received"])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
