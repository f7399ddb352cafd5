//go:build deep

package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
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

// reloadsFor is how long configs are replaced: RELOAD_SECONDS, or a few seconds.
func reloadsFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("RELOAD_SECONDS")
	if text == "" {
		return 4 * time.Second
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("RELOAD_SECONDS: %v", err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// reloadEvery is how often a config is replaced: RELOAD_EVERY, or 200 ms. 12,000 reloads in ten minutes are RELOAD_SECONDS=600 and
// RELOAD_EVERY=50ms.
func reloadEvery(t *testing.T) time.Duration {
	t.Helper()
	every, err := time.ParseDuration(cmp.Or(os.Getenv("RELOAD_EVERY"), "200ms"))
	if err != nil {
		t.Fatalf("RELOAD_EVERY: %v", err)
	}
	return every
}

// TestReloadOften replaces the config every 200 ms under load, with limits in Redis and in memory. The handlers of all configs
// share one Redis client, goroutines and memory do not pile up, no request fails, and the limits hold over all
// configs together.
func TestReloadOften(t *testing.T) {
	patient.BesideOthers(t)
	const (
		limit   = 100_000 // more than the clients can use meanwhile
		small   = 1000
		clients = 9
		pool    = 10      // connections that the one client may have; fewer than there are reloads
		growth  = 5 << 20 // of the heap
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
	reloads, slowest, mostOpen := 0, time.Duration(0), 0
	ticker := time.NewTicker(reloadEvery(t))
	defer ticker.Stop()
	heap := 0 // after the first reloads, which make what stays
	for length, begun := reloadsFor(t), time.Now(); time.Since(begun) < length; <-ticker.C {
		start := time.Now()
		reloads++
		s.MustLoad(config(reloads))
		slowest = max(slowest, time.Since(start))
		mostOpen = max(mostOpen, connectionsOpen(t, redisServer))
		if reloads == 10 {
			heap = heapInUse(s, t)
		}
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
	t.Logf("%d reloads, the slowest of %v, under %d requests: goroutines %d and then %d; at most %d connections to Redis, %d made after the first",
		reloads, slowest.Round(time.Millisecond), during, goroutines, now, mostOpen, more)
	// A client of its own for each config would make at least one connection for each reload.
	if mostOpen > pool || more > pool {
		t.Errorf("%d connections were open, %d made during %d reloads, want at most %d", mostOpen, more, reloads, pool)
	}
	patient.Until(t, "the small limits to be used up", func() bool { return refused[1].Load() > 50 && refused[2].Load() > 50 })
	stop()
	for i := 1; i <= 2; i++ {
		if got := admitted[i].Load(); got != small {
			t.Errorf("%s: %d admitted of a limit of %d, over %d configs", paths[i], got, small, reloads+1)
		}
	}
	after := 0
	patient.Until(t, "the heap to be as it was", func() bool { after = heapInUse(s, t); return heap == 0 || after <= heap+growth })
	t.Logf("the heap had %d bytes after 10 reloads, and then %d", heap, after)
	s.Sound(t)
}

// heapInUse returns the bytes of the heap that are alive.
func heapInUse(s *harness.Server, t *testing.T) (bytes int) {
	t.Helper()
	text, err := s.Admin("GET", "/debug/pprof/heap?gc=1&debug=1", "", "")
	if err != nil {
		t.Fatal(err)
	}
	const field = "# HeapAlloc = "
	if i := strings.Index(text, field); i >= 0 {
		_, err = fmt.Sscan(text[i+len(field):], &bytes)
	}
	if err != nil || bytes == 0 {
		t.Fatalf("no %s in the profile: %v", field, err)
	}
	return bytes
}

// connectionsOpen returns how many connections a Redis has, without the test's own.
func connectionsOpen(t *testing.T, redisServer *redistest.Server) int {
	t.Helper()
	list, err := redisServer.Admin().ClientList(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n") - 1
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
