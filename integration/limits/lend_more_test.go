package limits_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

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
