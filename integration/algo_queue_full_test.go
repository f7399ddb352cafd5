package integration_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// retryAfter reads the header, in seconds.
func retryAfter(t *testing.T, a answer) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil {
		t.Errorf("Retry-After: %v", err)
	}
	return time.Duration(seconds) * time.Second
}

// wantRefused sends a request, and wants an immediate refusal with a wait of about that length.
// The test may have begun some time ago.
func (s *server) wantRefused(client *http.Client, path string, wait time.Duration, began time.Time) {
	s.t.Helper()
	a := s.get(client, path)
	if a.status != http.StatusTooManyRequests {
		s.t.Errorf("%s: status %d, want 429", path, a.status)
		return
	}
	if got := retryAfter(s.t, a); got > wait || got < wait-time.Since(began) {
		s.t.Errorf("%s: Retry-After %v, want %v less what has passed since", path, got, wait)
	}
}

// TestQueueFull: a bucket of three that leaks one per hour. One request passes, two wait, and the
// next is refused, until the last request in the queue leaves.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	config := func(store string) string {
		// A refusal is remembered for a while, even if another request gives a turn back.
		store = strings.Replace(store, "store redis {", "store redis {\ndeny_cache off", 1)
		return caddyfile("", limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 3", store, "respond ok"))
	}
	eachFleet(t, config, func(t *testing.T, f fleet) {
		first, last := f.first, f.last
		client := newClient(t, "")
		began := time.Now()
		if a := first.get(client, "/queue"); a.status != http.StatusOK {
			t.Fatalf("the first: status %d", a.status)
		}
		waits := func(s *server, left int64) *pending {
			t.Helper()
			p := s.begin("/queue")
			last.awaitLeft(client, "queue", left)
			return p
		}
		second := waits(last, 1)
		third := waits(first, 0)
		for _, s := range []*server{first, last} {
			s.wantRefused(client, "/queue", time.Hour, began)
		}

		third.leave()
		last.awaitLeft(client, "queue", 1)
		fourth := waits(last, 0)
		first.wantRefused(client, "/queue", time.Hour, began)

		// The second request hands its turn on to the fourth, which waits in the same Caddy, and
		// the turn of the fourth comes back.
		second.leave()
		first.awaitLeft(client, "queue", 1)
		fifth := waits(first, 0)
		if fourth.over() {
			t.Error("the fourth has got a turn within an hour")
		}
		// Neither of two instances knows which requests wait in the other. So the turn of the fourth
		// request is spare until the fifth has left too.
		fourth.leave()
		fifth.leave()
		first.awaitLeft(client, "queue", 2)
		waits(first, 1).leave()
		first.awaitWaiting(0)
		last.awaitWaiting(0)
	})
}

// TestQueueMaxWait: a request that would have to wait longer than max_wait is refused at once,
// although the queue has room.
func TestQueueMaxWait(t *testing.T) {
	t.Parallel()
	config := func(store string) string {
		return caddyfile("", limited("long", "algorithm leaky_bucket 1/100s\nmode queue\nburst 10\nmax_wait 250s", store, "respond ok")+
			limited("short", "algorithm leaky_bucket 5/1s\nmode queue\nburst 100\nmax_wait 500ms", store, "respond ok"))
	}
	eachFleet(t, config, func(t *testing.T, f fleet) {
		first, last := f.first, f.last
		client := newClient(t, "")
		began := time.Now()
		if a := first.get(client, "/long"); a.status != http.StatusOK {
			t.Fatalf("the first: status %d", a.status)
		}
		var queue []*pending
		for n, s := range []*server{first, last} {
			queue = append(queue, s.begin("/long"))
			first.awaitLeft(client, "long", int64(8-n))
		}
		// The next turn is in 300 s, which is within max_wait in 50 s. The next bit of quota
		// comes back in 100 s. Clients are told the longer wait.
		for _, s := range []*server{first, last} {
			s.wantRefused(client, "/long", 100*time.Second, began)
		}
		if left := first.left(client, "long"); left != 7 {
			t.Errorf("%d left, want 7: a refusal charges nothing", left)
		}
		for _, p := range queue {
			p.leave()
		}

		// Twenty requests come at once. Those whose turn comes within half a second pass.
		var all []*pending
		for range 10 {
			all = append(all, first.begin("/short"), last.begin("/short"))
		}
		passed, longest := 0, time.Duration(0)
		for _, p := range all {
			a := p.result()
			if a.status == http.StatusOK {
				passed++
				longest = max(longest, a.done.Sub(a.sent))
			} else if a.status != http.StatusTooManyRequests {
				t.Errorf("status %d", a.status)
			}
		}
		t.Logf("%d of %d passed, the last after %v", passed, len(all), longest)
		if passed < 3 {
			t.Errorf("%d passed, want 3 or more", passed)
		}
		patient.Soon(t, "the last to pass", longest, 3*time.Second)
	})
}
