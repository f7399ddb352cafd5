package integration_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestKilledCaddy: the slots of a Caddy that was killed come back when their leases end, and the
// other instance can use them. The other instance's own slots stay taken.
func TestKilledCaddy(t *testing.T) {
	t.Parallel()
	const lease, margin = 6 * time.Second, 3 * time.Second
	upstream := startBackend(t, holding)
	both := startPair(t, caddyfile("", limited("slots", "algorithm concurrency\nevents 4\nlease 6s",
		redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.variable())
	victim, survivor := both[0], both[1]
	client := newClient(t, "")

	own := survivor.begin("/slots")
	for range 3 {
		victim.begin("/slots")
	}
	upstream.awaitInside(t, 4)
	renewed := time.Now().Add(lease + lease/4)
	patient.Until(t, "a lease to have been renewed", func() bool {
		if left := survivor.left(client, "slots"); left != 0 {
			t.Fatalf("%d left while all slots are taken", left)
		}
		return time.Now().After(renewed)
	})
	if err := victim.process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	var first, all time.Duration
	patient.Until(t, "the slots to come back", func() bool {
		left, after := survivor.left(client, "slots"), time.Since(killed)
		if left > 0 && first == 0 {
			first = after
		}
		all = after
		return left >= 3
	})
	t.Logf("after kill -9 the first slot came back after %v, all after %v, at a lease of %v", first, all, lease)
	patient.Soon(t, "all slots to come back", all, lease+margin)
	// No more than three, because the survivor's own slot is still taken.
	upstream.awaitInside(t, 1)
	for range 3 {
		survivor.begin("/slots")
	}
	upstream.awaitInside(t, 4)
	if got := survivor.admitted(client, 5, "/slots"); got != 0 {
		t.Errorf("%d admitted beyond the limit", got)
	}
	upstream.open("")
	if a := own.result(); a.status != http.StatusOK {
		t.Errorf("the survivor's own request: status %d", a.status)
	}
	survivor.awaitLeft(client, "slots", 4)
	survivor.sound(t)
}
