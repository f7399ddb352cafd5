package integration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// TestWaitsAreTrue: a client that waits as long as it was told is admitted, and one that comes a
// second earlier, or more, is not. That holds for Retry-After and for t.
func TestWaitsAreTrue(t *testing.T) {
	t.Parallel()
	zones := map[string]string{
		"log":     "algorithm sliding_window_log 2/4s",
		"counter": "algorithm sliding_window_counter 2/4s",
		"bucket":  "algorithm token_bucket 1/4s",
		"meter":   "algorithm leaky_bucket 1/4s",
		"window":  "algorithm fixed_window 2/4s\n align first_request",
	}
	text := ""
	for name, limit := range zones {
		text += fmt.Sprintf(`
			handle /%[1]s {
				rate_limit {
					zone %[1]s {
						%[2]s
					}
				}
				respond ok
			}`, name, limit)
	}
	s := startCaddy(t, caddyfile("", text))
	client := newClient(t, "")
	var group sync.WaitGroup
	for name := range zones {
		group.Go(func() {
			for range 3 { // if the machine is too slow for the early client, it gets another chance
				if s.waitsAreTrue(client, name) {
					return
				}
			}
			t.Logf("%s: this machine is too slow to come early", name)
		})
	}
	group.Wait()
}

// waitsAreTrue uses a zone up, comes early, and comes in time. It returns false if it was too
// slow to come early.
func (s *server) waitsAreTrue(client *http.Client, name string) bool {
	ask := func() answer {
		a, err := send(client, s.url("/"+name))
		if err != nil {
			s.t.Error(err)
		}
		return a
	}
	refused := ask()
	for range 10 {
		if refused.status == http.StatusTooManyRequests {
			break
		}
		refused = ask()
	}
	wait, err := strconv.Atoi(refused.header.Get("Retry-After"))
	if err != nil || refused.status != http.StatusTooManyRequests {
		s.t.Errorf("%s: not refused: status %d, %v", name, refused.status, refused.header)
		return true
	}
	if next := nextQuota(refused.header); next < 1 || next > wait {
		s.t.Errorf("%s: t=%d, Retry-After: %d", name, next, wait)
	}
	came := false
	if early := time.Until(refused.sent.Add(time.Duration(wait)*time.Second - 1500*time.Millisecond)); wait > 1 && early > 0 {
		<-time.After(early)
		if a := ask(); a.done.Before(refused.sent.Add(time.Duration(wait-1) * time.Second)) {
			if came = true; a.status != http.StatusTooManyRequests {
				s.t.Errorf("%s: status %d more than a second before Retry-After %d is over", name, a.status, wait)
			}
		}
	}
	<-time.After(time.Until(refused.done.Add(time.Duration(wait) * time.Second)))
	if a := ask(); a.status != http.StatusOK {
		s.t.Errorf("%s: status %d after Retry-After: %d; %v", name, a.status, wait, a.header)
	}
	return came
}

// nextQuota returns the t of RateLimit, or 0.
func nextQuota(header http.Header) int {
	list, err := httpsfv.UnmarshalList(header.Values("RateLimit"))
	if err != nil || len(list) == 0 {
		return 0
	}
	next, _ := list[0].(httpsfv.Item).Params.Get("t")
	n, _ := next.(int64)
	return int(n)
}
