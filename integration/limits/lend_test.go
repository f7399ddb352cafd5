//go:build deep

package limits_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// lendFleet is three instances with zones that lend.
type lendFleet struct {
	caddys []*harness.Server
	redis  *redistest.Server
}

func startLendFleet(t *testing.T) *lendFleet {
	t.Helper()
	f := &lendFleet{redis: redistest.Start(t)}
	store := "store redis {\naddress " + f.redis.Addr() + "\n" + harness.Timeout() + "\n}\non_store_error deny\n"
	config := harness.Caddyfile("", harness.Limited("fixed", "key {query.k}\nalgorithm fixed_window 3000/1000h\nlend 100ms", store, "respond ok")+
		harness.Limited("bucket", "key {query.k}\nalgorithm token_bucket 2000/1s\nlend 100ms", store, "respond ok")+
		harness.Limited("held", "algorithm token_bucket 1000/24h\nlend 10s", store, "respond ok"))
	for range 3 {
		f.caddys = append(f.caddys, harness.StartCaddy(t, config))
	}
	return f
}

// TestLend: three instances that lend admit what the limit allows, never more and hardly less, with a
// fraction of the calls, and tell no client of more than is left. What is held ends if its Caddy does not run for
// a while, as on a busy machine: then less is admitted, and another key is tried.
func TestLend(t *testing.T) {
	t.Parallel()
	f := startLendFleet(t)
	const requests, tries = 6000, 5
	for _, zone := range []string{"fixed", "bucket"} {
		for try := 1; ; try++ {
			r := f.burst(t, zone, strconv.Itoa(try), requests, 48)
			least, most := int64(2950), int64(3000)
			if zone == "bucket" {
				most = min(requests, 2000+int64(2000*r.took.Seconds())+1)
				least = most * 97 / 100
			}
			t.Logf("%s: %d of at most %d admitted in %v (%.1f %%), %d calls", zone, r.admitted, most, r.took, 100*float64(r.admitted)/float64(most), r.calls)
			if r.admitted > most {
				t.Fatalf("%s: %d admitted, want at most %d", zone, r.admitted, most)
			}
			if r.admitted >= least && r.calls <= requests/4 {
				break
			}
			if try == tries || patient.Idle() {
				t.Errorf("%s: %d admitted with %d calls, want at least %d with at most %d", zone, r.admitted, r.calls, least, requests/4)
				break
			}
		}
	}
	f.shows(t)
}

// lendBurst is what happened to requests of one key.
type lendBurst struct {
	admitted int64
	calls    int
	took     time.Duration
}

// burst sends requests of one key to all instances. Before a window ends, a client is told at most what is
// left after all requests that its instance had admitted before it asked.
func (f *lendFleet) burst(t *testing.T, zone, key string, requests int64, atOnce int) (b lendBurst) {
	t.Helper()
	before, began := harness.ScriptCalls(t, f.redis), time.Now()
	var sent, admitted, promised atomic.Int64
	admittedBy := make([]atomic.Int64, len(f.caddys))
	var wait sync.WaitGroup
	for i := range atOnce {
		client, s, by := harness.NewClient(t, ""), f.caddys[i%len(f.caddys)], &admittedBy[i%len(f.caddys)]
		wait.Go(func() {
			for sent.Add(1) <= requests {
				known := by.Load()
				a, err := harness.Send(client, s.URL("/"+zone+"?k="+key))
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.Status == http.StatusOK:
					admitted.Add(1)
					by.Add(1)
					q, ok, err := harness.RateLimit(a.Header)
					if err != nil || !ok || zone != "bucket" && q.Remaining > 3000-known-1 {
						promised.Add(1)
					}
				case a.Status != http.StatusTooManyRequests && patient.Idle():
					t.Errorf("status %d", a.Status)
				}
			}
		})
	}
	wait.Wait()
	if n := promised.Load(); n > 0 {
		t.Errorf("%s: %d answers tell of more than is left", zone, n)
	}
	return lendBurst{admitted.Load(), int(harness.ScriptCalls(t, f.redis) - before), time.Since(began)}
}

// shows checks that the metrics show which requests needed no call, and that the admin API shows the limit, of which all is
// charged that is held.
func (f *lendFleet) shows(t *testing.T) {
	const n = 20
	if passed := f.caddys[0].Admitted(harness.NewClient(t, ""), n, "/held"); passed != n {
		t.Errorf("%d of %d admitted", passed, n)
	}
	var k adminapi.Key
	if f.caddys[1].Ask("/rate_limit/zones/held/key", &k); k.Used < n || k.Quota != 1000 || k.Used+k.Remaining != 1000 {
		t.Errorf("%d used and %d left of %d after %d requests", k.Used, k.Remaining, k.Quota, n)
	}
	metrics, err := f.caddys[0].Admin("GET", "/metrics", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(metrics, "rate_limit_store_lent_decisions_total{") {
		t.Error("the metrics do not show which requests needed no call")
	}
}
