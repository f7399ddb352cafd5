package integration_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// waiters are zones that make excess requests wait, under two algorithms.
func waiters(name, limit, maxWait, store string) string {
	text := ""
	for _, algorithm := range []string{"sliding_window_log", "token_bucket"} {
		text += limited(algorithm+"-"+name, "algorithm "+algorithm+" "+limit+"\nmax_wait "+maxWait, store, "respond ok")
	}
	return text
}

// TestMaxWaitPasses: requests that come too early wait and then pass, one in each window.
func TestMaxWaitPasses(t *testing.T) {
	t.Parallel()
	const window, late = time.Second, 10 * time.Second
	config := func(store string) string { return caddyfile("", waiters("passes", "1/1s", "30s", store)) }
	eachFleet(t, config, func(t *testing.T, f fleet) {
		first, last := f.first, f.last
		client := newClient(t, "")
		all := make(map[string][]*pending)
		began := time.Now()
		for _, zone := range []string{"sliding_window_log-passes", "token_bucket-passes"} {
			all[zone] = []*pending{first.begin("/" + zone), last.begin("/" + zone), first.begin("/" + zone)}
		}
		for zone, three := range all {
			var answers []answer
			for _, p := range three {
				answers = append(answers, p.result())
			}
			slices.SortFunc(answers, func(a, b answer) int { return a.done.Compare(b.done) })
			for i, a := range answers {
				earliest := time.Duration(i) * window
				if after := a.done.Sub(began); after < earliest-clockSlack {
					t.Errorf("%s: answer %d after %v, want %v and a little", zone, i, after, earliest)
				} else {
					patient.Soon(t, zone+": an answer", after, earliest+late)
				}
				if a.status != http.StatusOK || a.header.Get("Retry-After") != "" {
					t.Errorf("%s: answer %d: status %d, Retry-After %q", zone, i, a.status, a.header.Get("Retry-After"))
				}
			}
			t.Logf("%s: answers after %v, %v and %v", zone, answers[0].done.Sub(began), answers[1].done.Sub(began), answers[2].done.Sub(began))
			first.awaitLeft(client, zone, 1)
		}
	})
}

// TestMaxWaitRefuses: a request that would have to wait longer than max_wait is refused at once,
// or, if others were faster, as soon as that is clear.
func TestMaxWaitRefuses(t *testing.T) {
	t.Parallel()
	const maxWait, late = 1200 * time.Millisecond, 5 * time.Second
	config := func(store string) string {
		return caddyfile("", waiters("refuses", "1/1h", "30m", store)+waiters("crowd", "1/500ms", "1200ms", store))
	}
	eachFleet(t, config, func(t *testing.T, f fleet) {
		first, last := f.first, f.last
		client := newClient(t, "")
		for _, algorithm := range []string{"sliding_window_log", "token_bucket"} {
			began := time.Now()
			if a := first.get(client, "/"+algorithm+"-refuses"); a.status != http.StatusOK {
				t.Errorf("%s: the first: status %d", algorithm, a.status)
			}
			last.wantRefused(client, "/"+algorithm+"-refuses", time.Hour, began)

			var all []*pending
			for range 10 {
				all = append(all, first.begin("/"+algorithm+"-crowd"), last.begin("/"+algorithm+"-crowd"))
			}
			passed, longest := 0, time.Duration(0)
			for _, p := range all {
				a := p.result()
				longest = max(longest, a.done.Sub(a.sent))
				switch a.status {
				case http.StatusOK:
					passed++
				case http.StatusTooManyRequests:
					if wait := retryAfter(t, a); wait != time.Second {
						t.Errorf("%s: Retry-After %v at a window of half a second", algorithm, wait)
					}
				default:
					t.Errorf("%s: status %d", algorithm, a.status)
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
		return caddyfile("", "log\n"+waiters("leave", "1/3s", "30s", store)+waiters("hour", "1/30m", "45m", store))
	}
	eachFleet(t, config, func(t *testing.T, f fleet) {
		first, last := f.first, f.last
		client := newClient(t, "")
		for _, zone := range []string{"sliding_window_log-hour", "token_bucket-hour", "sliding_window_log-leave", "token_bucket-leave"} {
			began := time.Now()
			if a := first.get(client, "/"+zone); a.status != http.StatusOK {
				t.Fatalf("%s: the first: status %d", zone, a.status)
			}
			waits := []*pending{last.begin("/" + zone), last.begin("/" + zone)}
			last.awaitWaiting(2)
			for _, p := range waits {
				p.leave()
			}
			last.awaitWaiting(0)
			if !strings.HasSuffix(zone, "-leave") || time.Since(began) > window/2 {
				continue
			}
			// The next request passes after one window. If the others had been charged, it would
			// be after three.
			next := last.get(client, "/"+zone)
			if after := next.done.Sub(began); next.status != http.StatusOK || after < window-clockSlack || after > 3*window-clockSlack {
				t.Errorf("%s: status %d after %v, want 200 after %v", zone, next.status, after, window)
			}
		}
		left := 0
		patient.Until(t, "all who left to be logged", func() bool {
			left = 0
			lines, _ := last.lines()
			for _, l := range lines {
				if strings.HasPrefix(l.Logger, "http.log.access") && strings.Contains(l.text, `"status":499`) {
					left++
				}
			}
			return left >= 8
		})
		if left != 8 {
			t.Errorf("%d requests logged with status 499, want 8", left)
		}
		if n := first.waiting() + last.waiting(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}
