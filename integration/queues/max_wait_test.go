package queues_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// waiters are zones that make excess requests wait, under two algorithms.
func waiters(name, limit, maxWait, store string) string {
	text := ""
	for _, algorithm := range []string{"sliding_window_log", "token_bucket"} {
		text += harness.Limited(algorithm+"-"+name, "algorithm "+algorithm+" "+limit+"\nmax_wait "+maxWait, store, "respond ok")
	}
	return text
}

// TestMaxWaitPasses: requests that come too early wait and then pass, one in each window.
func TestMaxWaitPasses(t *testing.T) {
	t.Parallel()
	const window, late = time.Second, 10 * time.Second
	config := func(store string) string { return harness.Caddyfile("", waiters("passes", "1/1s", "30s", store)) }
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		all := make(map[string][]*harness.Pending)
		began := time.Now()
		for _, zone := range []string{"sliding_window_log-passes", "token_bucket-passes"} {
			all[zone] = []*harness.Pending{first.Begin("/" + zone), last.Begin("/" + zone), first.Begin("/" + zone)}
		}
		for zone, three := range all {
			var answers []harness.Answer
			for _, p := range three {
				answers = append(answers, p.Result())
			}
			slices.SortFunc(answers, func(a, b harness.Answer) int { return a.Done.Compare(b.Done) })
			for i, a := range answers {
				earliest := time.Duration(i) * window
				if after := a.Done.Sub(began); after < earliest-clockSlack {
					t.Errorf("%s: answer %d after %v, want %v and a little", zone, i, after, earliest)
				} else {
					patient.Soon(t, zone+": an answer", after, earliest+late)
				}
				if a.Status != http.StatusOK || a.Header.Get("Retry-After") != "" {
					t.Errorf("%s: answer %d: status %d, Retry-After %q", zone, i, a.Status, a.Header.Get("Retry-After"))
				}
			}
			t.Logf("%s: answers after %v, %v and %v", zone, answers[0].Done.Sub(began), answers[1].Done.Sub(began), answers[2].Done.Sub(began))
			first.AwaitLeft(client, zone, 1)
		}
	})
}

// TestMaxWaitRefuses: a request that would have to wait longer than max_wait is refused at once,
// or, if others were faster, as soon as that is clear.
func TestMaxWaitRefuses(t *testing.T) {
	t.Parallel()
	const maxWait, late = 1200 * time.Millisecond, 5 * time.Second
	config := func(store string) string {
		return harness.Caddyfile("", waiters("refuses", "1/1h", "30m", store)+waiters("crowd", "1/500ms", "1200ms", store))
	}
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		for _, algorithm := range []string{"sliding_window_log", "token_bucket"} {
			began := time.Now()
			if a := first.Get(client, "/"+algorithm+"-refuses"); a.Status != http.StatusOK {
				t.Errorf("%s: the first: status %d", algorithm, a.Status)
			}
			wantRefused(last, client, "/"+algorithm+"-refuses", time.Hour, began)

			var all []*harness.Pending
			for range 10 {
				all = append(all, first.Begin("/"+algorithm+"-crowd"), last.Begin("/"+algorithm+"-crowd"))
			}
			passed, longest := 0, time.Duration(0)
			for _, p := range all {
				a := p.Result()
				longest = max(longest, a.Done.Sub(a.Sent))
				switch a.Status {
				case http.StatusOK:
					passed++
				case http.StatusTooManyRequests:
					if wait := harness.RetryAfter(t, a); wait != time.Second {
						t.Errorf("%s: Retry-After %v at a window of half a second", algorithm, wait)
					}
				default:
					t.Errorf("%s: status %d", algorithm, a.Status)
				}
			}
			t.Logf("%s: %d of %d passed, the last answer after %v", algorithm, passed, len(all), longest)
			if passed < 2 || passed == len(all) {
				t.Errorf("%s: %d of %d passed", algorithm, passed, len(all))
			}
			patient.Soon(t, algorithm+": the last answer", longest, maxWait+late)
		}
	})
}

// TestMaxWaitLeave: a request whose client leaves while it waits ends, and is charged nothing.
func TestMaxWaitLeave(t *testing.T) {
	t.Parallel()
	const window = 3 * time.Second
	config := func(store string) string {
		return harness.Caddyfile("", "log\n"+waiters("leave", "1/3s", "30s", store)+waiters("hour", "1/30m", "45m", store))
	}
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		for _, zone := range []string{"sliding_window_log-hour", "token_bucket-hour", "sliding_window_log-leave", "token_bucket-leave"} {
			began := time.Now()
			if a := first.Get(client, "/"+zone); a.Status != http.StatusOK {
				t.Fatalf("%s: the first: status %d", zone, a.Status)
			}
			waits := []*harness.Pending{last.Begin("/" + zone), last.Begin("/" + zone)}
			last.AwaitWaiting(2)
			for _, p := range waits {
				p.Leave()
			}
			last.AwaitWaiting(0)
			if !strings.HasSuffix(zone, "-leave") || time.Since(began) > window/2 {
				continue
			}
			// The next request passes after one window. If the others had been charged, it would
			// be after three.
			next := last.Get(client, "/"+zone)
			if after := next.Done.Sub(began); next.Status != http.StatusOK || after < window-clockSlack || after > 3*window-clockSlack {
				t.Errorf("%s: status %d after %v, want 200 after %v", zone, next.Status, after, window)
			}
		}
		left := 0
		patient.Until(t, "all who left to be logged", func() bool {
			left = 0
			lines, _ := last.Lines()
			for _, l := range lines {
				if strings.HasPrefix(l.Logger, "http.log.access") && strings.Contains(l.Text, `"status":499`) {
					left++
				}
			}
			return left >= 8
		})
		if left != 8 {
			t.Errorf("%d requests logged with status 499, want 8", left)
		}
		if n := first.Waiting() + last.Waiting(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}
