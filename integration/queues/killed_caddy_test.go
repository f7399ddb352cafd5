//go:build deep

package queues_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestKilledCaddy: the slots of a Caddy that was killed come back when their leases end, and the
// other instance can use them. The other instance's own slots stay taken.
func TestKilledCaddy(t *testing.T) {
	t.Parallel()
	const lease, margin = 6 * time.Second, 3 * time.Second
	upstream := harness.StartBackend(t, harness.Holding)
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("slots", "algorithm concurrency\nevents 4\nlease 6s",
		harness.Redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.Variable())
	victim, survivor := both[0], both[1]
	client := harness.NewClient(t, "")

	own := survivor.Begin("/slots")
	for range 3 {
		victim.Begin("/slots")
	}
	upstream.AwaitInside(t, 4)
	renewed := time.Now().Add(lease + lease/4)
	patient.Until(t, "a lease to have been renewed", func() bool {
		if left := survivor.Left(client, "slots"); left != 0 {
			t.Fatalf("%d left while all slots are taken", left)
		}
		return time.Now().After(renewed)
	})
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	var first, all time.Duration
	patient.Until(t, "the slots to come back", func() bool {
		left, after := survivor.Left(client, "slots"), time.Since(killed)
		if left > 0 && first == 0 {
			first = after
		}
		all = after
		return left >= 3
	})
	t.Logf("after kill -9 the first slot came back after %v, all after %v, at a lease of %v", first, all, lease)
	patient.Soon(t, "all slots to come back", all, lease+margin)
	// No more than three, because the survivor's own slot is still taken.
	upstream.AwaitInside(t, 1)
	for range 3 {
		survivor.Begin("/slots")
	}
	upstream.AwaitInside(t, 4)
	if got := survivor.Admitted(client, 5, "/slots"); got != 0 {
		t.Errorf("%d admitted beyond the limit", got)
	}
	upstream.Open("")
	if a := own.Result(); a.Status != http.StatusOK {
		t.Errorf("the survivor's own request: status %d", a.Status)
	}
	survivor.AwaitLeft(client, "slots", 4)
	survivor.Sound(t)
}
