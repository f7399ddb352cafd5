package limits_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestLendSlotsOfPlans: whatever slots instances keep, requests of a plan with fewer never have more than theirs, and the
// others find those that are left.
func TestLendSlotsOfPlans(t *testing.T) {
	t.Parallel()
	const slots, fewer, requests = 10, 8, 30
	f := startManaged(t)
	for range 60 {
		f.send(t, "slots", "k=1", 1, 0, 1, 2)
	}
	if f.lent("slots") == [3]int64{} && patient.Idle() {
		t.Error("no instance keeps a slot")
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(f.release)
	var refused atomic.Int64
	flood := func(important string) {
		for i := range requests {
			client, s := harness.NewClient(t, ""), f.caddys[i%3]
			wait.Go(func() {
				r, err := http.NewRequest(http.MethodGet, s.URL("/slots?k=1&stays"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("X-Important", important)
				a, err := client.Do(r)
				if err != nil {
					t.Error(err)
				} else if _ = a.Body.Close(); a.StatusCode == http.StatusTooManyRequests {
					refused.Add(1)
				} else if a.StatusCode != http.StatusOK {
					t.Errorf("status %d", a.StatusCode)
				}
			})
		}
	}
	running := func() (others, important int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.running["no"], f.running["yes"]
	}
	flood("no")
	patient.Until(t, "all to be decided", func() bool { n, _ := running(); return int64(n)+refused.Load() == requests })
	others, _ := running()
	if others > fewer || others < fewer/2 {
		t.Errorf("%d of at most %d run", others, fewer)
	}
	flood("yes")
	patient.Until(t, "the important ones to be decided", func() bool { n, m := running(); return int64(n+m)+refused.Load() == 2*requests })
	if n, important := running(); n != others || n+important > slots || important < slots-fewer {
		t.Errorf("%d run, and %d important ones, of %d and %d", n, important, fewer, slots)
	}
}

// TestLendRedisRestarts: a Redis that restarts empty lets no more through than the limit, once more, and what was lent.
func TestLendRedisRestarts(t *testing.T) {
	t.Parallel()
	f := startManaged(t)
	held := f.hold(t, "managed", "k")
	before := f.reached("managed", "k")
	f.redis.Kill()
	f.redis.Restart()
	for decided, i := 0, 0; decided < of1000(1500); i++ {
		switch a := f.caddys[i%3].Get(f.client, "/managed?k=k"); a.Status {
		case http.StatusOK, http.StatusTooManyRequests:
			decided++
		case http.StatusServiceUnavailable: // until an instance knows that Redis is back
			patient.Until(t, "Redis", func() bool { return f.caddys[i%3].Get(f.client, "/managed?k=other").Status == http.StatusOK })
		default:
			t.Fatalf("status %d", a.Status)
		}
	}
	if n := f.reached("managed", "k") - before; n > int64(managedLimit)+held || n < int64(of1000(900)) {
		t.Errorf("%d reached the upstream after the restart, %d were held", n, held)
	}
}
