//go:build deep

package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// faultLimit is how much a client may ever have of /allow and of /deny. Under each fault, all of
// it is used in the end.
const faultLimit = 500

// policies are the routes of a fleet, one for each value of on_store_error whose limit can be counted exactly. Package limiter has
// the shares of instances that decide locally.
var policies = []string{"allow", "deny"}

// faultFleet is two instances that share a store, under load.
type faultFleet struct {
	t       *testing.T
	servers []*harness.Server
	loads   []*faultLoad
	client  *http.Client
}

// startFaultFleet starts two instances. The store is given as lines of a Caddyfile.
func startFaultFleet(t *testing.T, store string) *faultFleet {
	f := &faultFleet{t: t, client: harness.NewClient(t, "")}
	route := func(policy, zone string) string {
		return "handle /" + policy + " {\n rate_limit {\n zone " + policy + " {\n key {header.X-Api-Key}\n" + zone +
			"\n}\n on_store_error " + policy + "\n }\n respond ok\n}\n"
	}
	limit := strconv.Itoa(faultLimit)
	config := harness.Caddyfile("rate_limit {\n store redis {\n"+store+"\n"+harness.Timeout()+"\n}\n instances 2\n}",
		route("allow", "events "+limit+"\n window 1h")+
			route("deny", "events "+limit+"\n window 1h\n algorithm fixed_window\n align first_request"))
	for range 2 {
		f.servers = append(f.servers, harness.StartCaddy(t, config))
	}
	return f
}

// faultLoad is a number of clients that send requests to one route of one Caddy, in turn.
type faultLoad struct {
	server  *harness.Server
	policy  string
	mu      sync.Mutex
	samples []sample
}

// load sends 100 requests per second to all routes of both instances until it is stopped. Each
// client begins with its whole limit.
func (f *faultFleet) load(key string) (stop func()) {
	const clients, pause = 2, 80 * time.Millisecond
	done := make(chan struct{})
	var group sync.WaitGroup
	f.loads = nil
	for _, s := range f.servers {
		for _, policy := range policies {
			l := &faultLoad{server: s, policy: policy}
			f.loads = append(f.loads, l)
			for range clients {
				group.Go(func() {
					ticker := time.NewTicker(pause)
					defer ticker.Stop()
					for {
						select {
						case <-done:
							return
						case <-ticker.C:
							l.add(askSample(f.client, s.URL("/"+policy), key))
						}
					}
				})
			}
		}
	}
	stop = sync.OnceFunc(func() { close(done); group.Wait() })
	f.t.Cleanup(stop)
	return stop
}

func askSample(client *http.Client, url, key string) sample {
	a, err := harness.Send(client, url, "X-Api-Key", key)
	wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	return sample{
		sent: a.Sent, took: a.Done.Sub(a.Sent), status: a.Status,
		decided: a.Header.Get("RateLimit-Policy") != "", retryAfter: wait, err: err,
	}
}

func (l *faultLoad) add(s sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.samples = append(l.samples, s)
}

// since returns the answers to requests that were sent after a time.
func (l *faultLoad) since(begun time.Time) []sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.samples), func(s sample) bool { return s.sent.Before(begun) })
}

// inARow is how many answers of the store in a row on a route count as service.
const inARow = 10

// steady waits until each route of each instance that was asked since then has service, and returns
// how long the last route had to wait.
func (f *faultFleet) steady(t *testing.T, since time.Time) (after time.Duration) {
	t.Helper()
	for _, l := range f.loads {
		patient.Until(t, l.policy+" to be decided by the store", func() bool {
			first, ok := service(l.since(since))
			if ok {
				after = max(after, first.sent.Sub(since))
			}
			return ok
		})
	}
	return after
}

// service returns the first of enough answers in a row that were decided.
func service(samples []sample) (first sample, ok bool) {
	n := 0
	for _, s := range samples {
		switch {
		case !s.decided:
			n = 0
		case n == 0:
			first, n = s, 1
		default:
			n++
		}
		if n == inARow {
			return first, true
		}
	}
	return sample{}, false
}

// spend uses some of a client's limit, and returns how much it got.
func (f *faultFleet) spend(t *testing.T, policy, key string, n int) (admitted int) {
	t.Helper()
	for range n {
		if a := askSample(f.client, f.servers[0].URL("/"+policy), key); a.err != nil {
			t.Fatal(a.err)
		} else if a.decided && a.status == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

// drain uses what is left of a client's limit, and returns how much that is. Answers that come
// too late from the store, as on a busy machine, may be lost.
func (f *faultFleet) drain(t *testing.T, policy, key string) (admitted, lost int) {
	t.Helper()
	for refused := 0; refused < 2*len(f.servers); {
		for _, s := range f.servers {
			switch a := askSample(f.client, s.URL("/"+policy), key); {
			case a.err != nil:
				t.Fatal(a.err)
			case !a.decided:
				lost++
			case a.status == http.StatusOK:
				admitted++
				refused = 0
			default:
				refused++
			}
		}
		if admitted > 3*faultLimit {
			t.Fatalf("%s: %d admitted after the fault, and still no end", policy, admitted)
		}
	}
	return admitted, lost
}

// goroutines returns how many goroutines each instance has.
func (f *faultFleet) goroutines(t *testing.T) (counts []int) {
	t.Helper()
	for _, s := range f.servers {
		counts = append(counts, countGoroutines(s, t))
	}
	return counts
}

func countGoroutines(s *harness.Server, t *testing.T) int {
	t.Helper()
	text, err := s.Admin("GET", "/debug/pprof/goroutine?debug=1", "", "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("no total in the profile of goroutines: %.100q", text)
	}
	return n
}

// sample is one answer under load.
type sample struct {
	sent       time.Time
	took       time.Duration
	status     int
	decided    bool // it has a RateLimit header
	retryAfter int
	err        error
}
