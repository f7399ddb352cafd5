//go:build deep

package floods_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestFloodCostsRedisLittle floods one key that has a limit of 100 per second with as many
// requests as the machine can send. Redis sees the requests that it admits, and a few more.
func TestFloodCostsRedisLittle(t *testing.T) {
	patient.BesideOthers(t)
	const (
		limit   = 100
		clients = 16
		length  = 2 * time.Second
	)
	for _, c := range []struct {
		algorithm string
		each      int64 // the number of calls that one admitted request may cost
	}{{"token_bucket", 3}, {"fixed_window", 1}} {
		t.Run(c.algorithm, func(t *testing.T) {
			redisServer := redistest.Start(t)
			s := harness.StartCaddy(t, harness.Caddyfile("", `
				rate_limit {
					zone flood {
						algorithm `+c.algorithm+` `+strconv.Itoa(limit)+`/1s
					}
					store redis {
						address {$REDIS}
						timeout 10s
					}
					on_store_error deny
				}
				respond ok`), "REDIS="+redisServer.Addr())
			client := harness.NewClient(t, "")
			s.Get(client, "/") // until everything is ready
			before := harness.ScriptCalls(t, redisServer)
			var admitted, refused atomic.Int64
			var group sync.WaitGroup
			begun := time.Now()
			for range clients {
				group.Go(func() {
					for time.Since(begun) < length {
						switch a, err := harness.Send(client, s.URL("/")); {
						case err != nil:
							t.Error(err)
							return
						case a.Status == http.StatusOK:
							admitted.Add(1)
						case a.Status == http.StatusTooManyRequests:
							refused.Add(1)
						default:
							t.Errorf("status %d", a.Status)
							return
						}
					}
				})
			}
			group.Wait()
			took := time.Since(begun)
			calls := harness.ScriptCalls(t, redisServer) - before
			t.Logf("%.0f requests a second: %d admitted, %d refused, at the cost of %d calls to Redis",
				float64(admitted.Load()+refused.Load())/took.Seconds(), admitted.Load(), refused.Load(), calls)
			seconds := int64(took.Seconds()) + 2
			if n := admitted.Load(); n > limit*seconds {
				t.Errorf("%d admitted in %v, want at most %d a second", n, took, limit)
			}
			// When a wait is over, requests that come before the answer to the first one ask as
			// well. That is each 10 ms with a bucket, and each second with a window.
			if most := admitted.Load()*c.each + 10*seconds; int64(calls) > most {
				t.Errorf("%d calls for %d admitted, want at most %d", calls, admitted.Load(), most)
			}
			s.Sound(t)
		})
	}
}
