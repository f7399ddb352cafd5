package limits_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestAlgorithmsExactly: 32 clients send 300 requests to two instances in turn. Each algorithm
// admits exactly its limit.
func TestAlgorithmsExactly(t *testing.T) {
	patient.BesideOthers(t)
	const requests, clients = 300, 32
	hours := quietWindow("fixed_window").String()
	zones := []struct {
		name, options string
		limit         int
	}{
		{"token_bucket-smooth", "algorithm token_bucket\nevents 100\nwindow 1h", 100},
		{"token_bucket-burst", "algorithm token_bucket\nevents 10\nwindow 1h\nburst 100", 100},
		{"token_bucket-interval", "algorithm token_bucket\nevents 100\nwindow 1h\nrefill interval", 100},
		{"gcra", "algorithm gcra\nevents 100\nwindow 1h", 100},
		{"leaky_bucket-meter", "algorithm leaky_bucket\nevents 100\nwindow 1h\nmode meter", 100},
		{"fixed_window-clock", "algorithm fixed_window\nevents 100\nwindow " + hours, 100},
		{"fixed_window-first", "algorithm fixed_window\nevents 100\nwindow 1h\nalign first_request", 100},
		{"fixed_window-day", "algorithm fixed_window\nevents 100\nwindow day\ntimezone " + harness.NoonZone(), 100},
		{"sliding_window_log", "algorithm sliding_window_log\nevents 100\nwindow 1h", 100},
		{"sliding_window_counter", "algorithm sliding_window_counter\nevents 100\nwindow 1h", 100},
		{"concurrency", "algorithm concurrency\nevents 20\nlease 10m", 20},
	}
	upstream := harness.StartBackend(t, harness.Holding)
	store, site := harness.Redis(redistest.Start(t).Addr()), ""
	for _, zone := range zones {
		then := "respond ok"
		if zone.name == "concurrency" {
			then = "reverse_proxy {$UPSTREAM}"
		}
		site += harness.Limited(zone.name, zone.options, store, then)
	}
	both := harness.StartPair(t, harness.Caddyfile("", site), upstream.Variable())
	client := harness.NewClient(t, "")
	for _, zone := range zones {
		t.Run(zone.name, func(t *testing.T) {
			var next, passed, refused atomic.Int64
			var group sync.WaitGroup
			began := time.Now()
			for range clients {
				group.Go(func() {
					for {
						i := next.Add(1) - 1
						if i >= requests {
							return
						}
						a, err := harness.Send(client, both[i%2].URL("/"+zone.name))
						switch {
						case err != nil:
							t.Error(err)
						case a.Status == http.StatusOK:
							passed.Add(1)
						case a.Status == http.StatusTooManyRequests:
							refused.Add(1)
						default:
							t.Errorf("status %d", a.Status)
						}
					}
				})
			}
			if zone.name == "concurrency" {
				// Requests that pass stay until all others have been refused.
				patient.Until(t, "all requests to be decided", func() bool {
					inside, _ := upstream.Now()
					return int64(inside)+refused.Load() == requests
				})
				upstream.Open("")
			}
			group.Wait()
			elapsed := time.Since(began)
			t.Logf("%d passed, %d refused in %v", passed.Load(), refused.Load(), elapsed)
			// At 100 per hour, the next one comes after 36 s.
			if elapsed > 30*time.Second {
				t.Skipf("%v is too long to judge a bucket", elapsed)
			}
			if passed.Load() != int64(zone.limit) || refused.Load() != int64(requests-zone.limit) {
				t.Errorf("%d passed and %d were refused, want %d and %d", passed.Load(), refused.Load(), zone.limit, requests-zone.limit)
			}
		})
	}
	for _, s := range both {
		s.Sound(t)
	}
}
