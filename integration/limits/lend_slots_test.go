package limits_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestLendSlotsOfKilled: instances that keep slots never have more requests at the upstream than the limit, also after
// one of them was killed. Its slots come back when their leases end.
func TestLendSlotsOfKilled(t *testing.T) {
	t.Parallel()
	const limit = 6
	var running, most, sent atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(3 * time.Millisecond) // the work
		running.Add(-1)
	}))
	t.Cleanup(upstream.Close)
	config := harness.Caddyfile("", harness.Limited("slots", "algorithm concurrency\nevents 6\nlease 6s\nlend 1s", harness.Redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}"))
	var caddys []*harness.Server
	for range 3 {
		caddys = append(caddys, harness.StartCaddy(t, config, "UPSTREAM="+upstream.Listener.Addr().String()))
	}
	flood := func(requests int64, at ...int) {
		var wait sync.WaitGroup
		until := sent.Load() + requests
		for i := range 12 {
			client, s := harness.NewClient(t, ""), caddys[at[i%len(at)]]
			wait.Go(func() {
				for sent.Add(1) <= until {
					_, _ = harness.Send(client, s.URL("/slots")) // one of them may be killed
				}
			})
		}
		wait.Wait()
	}
	flood(600, 0, 1, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		flood(600, 0, 1, 2)
	}()
	began := sent.Load()
	patient.Until(t, "some requests", func() bool { return sent.Load() > began+50 })
	if err := caddys[2].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	patient.Until(t, "all slots to come back", func() bool {
		return caddys[0].Left(harness.NewClient(t, ""), "slots") == limit
	})
	flood(600, 0, 1)
	if n := most.Load(); n > limit || n < 3 {
		t.Errorf("%d requests at once at the upstream, want up to %d", n, limit)
	}
}
