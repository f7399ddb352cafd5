package headers_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
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
	s := harness.StartCaddy(t, harness.Caddyfile("", text))
	client := harness.NewClient(t, "")
	var group sync.WaitGroup
	for name := range zones {
		group.Go(func() {
			for range 3 { // if the machine is too slow for the early client, it gets another chance
				if waitsAreTrue(s, client, name) {
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
func waitsAreTrue(s *harness.Server, client *http.Client, name string) bool {
	ask := func() harness.Answer {
		a, err := harness.Send(client, s.URL("/"+name))
		if err != nil {
			s.T.Error(err)
		}
		return a
	}
	refused := ask()
	for range 10 {
		if refused.Status == http.StatusTooManyRequests {
			break
		}
		refused = ask()
	}
	wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	if err != nil || refused.Status != http.StatusTooManyRequests {
		s.T.Errorf("%s: not refused: status %d, %v", name, refused.Status, refused.Header)
		return true
	}
	if next := nextQuota(refused.Header); next < 1 || next > wait {
		s.T.Errorf("%s: t=%d, Retry-After: %d", name, next, wait)
	}
	came := false
	if early := time.Until(refused.Sent.Add(time.Duration(wait)*time.Second - 1500*time.Millisecond)); wait > 1 && early > 0 {
		<-time.After(early)
		if a := ask(); a.Done.Before(refused.Sent.Add(time.Duration(wait-1) * time.Second)) {
			if came = true; a.Status != http.StatusTooManyRequests {
				s.T.Errorf("%s: status %d more than a second before Retry-After %d is over", name, a.Status, wait)
			}
		}
	}
	<-time.After(time.Until(refused.Done.Add(time.Duration(wait) * time.Second)))
	if a := ask(); a.Status != http.StatusOK {
		s.T.Errorf("%s: status %d after Retry-After: %d; %v", name, a.Status, wait, a.Header)
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
