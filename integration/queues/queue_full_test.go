package queues_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// wantRefused sends a request, and wants an immediate refusal with a wait of about that length.
// The test may have begun some time ago.
func wantRefused(s *harness.Server, client *http.Client, path string, wait time.Duration, began time.Time) {
	s.T.Helper()
	a := s.Get(client, path)
	if a.Status != http.StatusTooManyRequests {
		s.T.Errorf("%s: status %d, want 429", path, a.Status)
		return
	}
	if got := harness.RetryAfter(s.T, a); got > wait || got < wait-time.Since(began) {
		s.T.Errorf("%s: Retry-After %v, want %v less what has passed since", path, got, wait)
	}
}

// TestQueueFull: a bucket of three that leaks one per hour. One request passes, two wait, and the
// next is refused, until the last request in the queue leaves.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	config := func(store string) string {
		// A refusal is remembered for a while, even if another request gives a turn back.
		store = strings.Replace(store, "store redis {", "store redis {\ndeny_cache off", 1)
		return harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 3", store, "respond ok"))
	}
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		began := time.Now()
		if a := first.Get(client, "/queue"); a.Status != http.StatusOK {
			t.Fatalf("the first: status %d", a.Status)
		}
		waits := func(s *harness.Server, left int64) *harness.Pending {
			t.Helper()
			p := s.Begin("/queue")
			last.AwaitLeft(client, "queue", left)
			return p
		}
		second := waits(last, 1)
		third := waits(first, 0)
		for _, s := range []*harness.Server{first, last} {
			wantRefused(s, client, "/queue", time.Hour, began)
		}

		third.Leave()
		last.AwaitLeft(client, "queue", 1)
		fourth := waits(last, 0)
		wantRefused(first, client, "/queue", time.Hour, began)

		// The second request hands its turn on to the fourth, which waits in the same Caddy, and
		// the turn of the fourth comes back.
		second.Leave()
		first.AwaitLeft(client, "queue", 1)
		fifth := waits(first, 0)
		if fourth.Over() {
			t.Error("the fourth has got a turn within an hour")
		}
		// Neither of two instances knows which requests wait in the other. So the turn of the fourth
		// request is spare until the fifth has left too.
		fourth.Leave()
		fifth.Leave()
		first.AwaitLeft(client, "queue", 2)
		waits(first, 1).Leave()
		first.AwaitWaiting(0)
		last.AwaitWaiting(0)
	})
}

// TestQueueMaxWait: a request that would have to wait longer than max_wait is refused at once,
// although the queue has room.
func TestQueueMaxWait(t *testing.T) {
	t.Parallel()
	config := func(store string) string {
		return harness.Caddyfile("", harness.Limited("long", "algorithm leaky_bucket 1/100s\nmode queue\nburst 10\nmax_wait 250s", store, "respond ok")+
			harness.Limited("short", "algorithm leaky_bucket 5/1s\nmode queue\nburst 100\nmax_wait 500ms", store, "respond ok"))
	}
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		began := time.Now()
		if a := first.Get(client, "/long"); a.Status != http.StatusOK {
			t.Fatalf("the first: status %d", a.Status)
		}
		var queue []*harness.Pending
		for n, s := range []*harness.Server{first, last} {
			queue = append(queue, s.Begin("/long"))
			first.AwaitLeft(client, "long", int64(8-n))
		}
		// The next turn is in 300 s, which is within max_wait in 50 s. The next bit of quota
		// comes back in 100 s. Clients are told the longer wait.
		for _, s := range []*harness.Server{first, last} {
			wantRefused(s, client, "/long", 100*time.Second, began)
		}
		if left := first.Left(client, "long"); left != 7 {
			t.Errorf("%d left, want 7: a refusal charges nothing", left)
		}
		for _, p := range queue {
			p.Leave()
		}

		// Twenty requests come at once. Those whose turn comes within half a second pass.
		var all []*harness.Pending
		for range 10 {
			all = append(all, first.Begin("/short"), last.Begin("/short"))
		}
		passed, longest := 0, time.Duration(0)
		for _, p := range all {
			a := p.Result()
			if a.Status == http.StatusOK {
				passed++
				longest = max(longest, a.Done.Sub(a.Sent))
			} else if a.Status != http.StatusTooManyRequests {
				t.Errorf("status %d", a.Status)
			}
		}
		t.Logf("%d of %d passed, the last after %v", passed, len(all), longest)
		if passed < 3 {
			t.Errorf("%d passed, want 3 or more", passed)
		}
		patient.Soon(t, "the last to pass", longest, 3*time.Second)
	})
}
