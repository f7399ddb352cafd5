package limiter_test

import (
	"math/rand"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// fleetStore is one store for a fleet.
type fleetStore struct{}

func (fleetStore) Identity() (string, error)  { return "fleet", nil }
func (fleetStore) Open() (store.Store, error) { return memorystore.New(memorystore.Options{}) }

// timedFleet is a fleet of three, each of which estimates by itself, in front of pages that take 10 ms or 1 s.
type timedFleet [3]*limiter.Limiter

func newTimedFleet(t *testing.T, ref *pool.Ref, l limit.Limit) (f timedFleet) {
	for i := range f {
		template, err := key.New("{http.request.header.X-Key}", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		by := &cost.Measured{Of: cost.ResponseTime}
		if err := by.Compile(); err != nil {
			t.Fatal(err)
		}
		z, err := zone.New(zone.Spec{
			Name: "time", Template: template, Limit: l, Cost: limit.Amount{Number: 1}, MissingKey: zone.MissingShare, CostMeasured: by,
		}, new(stats.Counters))
		if err != nil {
			t.Fatal(err)
		}
		f[i] = limiter.New(limiter.Config{Zones: []*zone.Zone{z}, Store: ref, Logger: zap.NewNop()})
	}
	return f
}

// serve sends a request to one of the fleet, and reports whether it has passed.
func (f timedFleet) serve(instance int, client, path string, takes time.Duration) bool {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("X-Key", client)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
	v := f[instance].Decide(r)
	passes := v.Passes()
	c := v.Release()
	if passes {
		_ = c.Serve(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			time.Sleep(takes)
			return nil
		}), noErrorRoutes{})
	}
	return passes
}

// TestTimeOfAFleet: each client gets the seconds of its limit, whatever pages it asks for, from whichever of three
// instances: within 5 % over minutes, one in short and five in full.
func TestTimeOfAFleet(t *testing.T) {
	const (
		perMinute = 60_000
		warm      = 2 // minutes
	)
	all := time.Duration(warm + 1)
	if deep.Run() {
		all = warm + 5
	}
	pages := map[string][]time.Duration{"fast": {10 * time.Millisecond}, "slow": {time.Second}, "mixed": {10 * time.Millisecond, time.Second}, "one path": {10 * time.Millisecond, time.Second}}
	for algorithm, burst := range map[string]int64{"token_bucket": 10_000, "sliding_window_log": 0, "sliding_window_counter": 0, "fixed_window": 0} {
		synctest.Test(t, func(t *testing.T) {
			ref, err := pool.Acquire(fleetStore{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := ref.Release(); err != nil {
					t.Error(err)
				}
			}()
			l := limit.Limit{
				MaxEvents: &limit.Amount{Number: perMinute}, Window: limit.Window{Duration: caddy.Duration(time.Minute)}, Algorithm: algorithm, Burst: limit.Amount{Number: burst},
			}
			fleet, began := newTimedFleet(t, ref, l), time.Now()
			served := make(map[string]chan time.Duration)
			for client, takes := range pages {
				served[client] = make(chan time.Duration, 4)
				for worker := range 4 {
					go func() {
						rnd, sum := rand.New(rand.NewSource(int64(worker))), time.Duration(0)
						for since := time.Duration(0); since < all*time.Minute; since = time.Since(began) {
							page := takes[rnd.Intn(len(takes))]
							path := "/" + page.String()
							if client == "one path" {
								path = "/"
							}
							switch {
							case !fleet.serve(rnd.Intn(3), client, path, page):
								time.Sleep(200 * time.Millisecond)
							case since >= warm*time.Minute:
								sum += page
							}
						}
						served[client] <- sum
					}()
				}
			}
			for client, sums := range served {
				var sum time.Duration
				for range 4 {
					sum += <-sums
				}
				got := sum.Seconds() / float64(all-warm)
				t.Logf("%s: %s has had %.1f s a minute", algorithm, client, got)
				if got < 57 || got > 63 {
					t.Errorf("%s: %s has had %.1f s a minute, want 60", algorithm, client, got)
				}
			}
		})
	}
}
