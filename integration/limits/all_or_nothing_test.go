package limits_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestIssue10AllOrNothing: two limits on one client, as in mholt/caddy-ratelimit#10. A client
// that hammers must get the whole long limit at the pace of the short one: what the short limit
// refuses must not count in the long one.
func TestIssue10AllOrNothing(t *testing.T) {
	t.Parallel()
	const long = 5
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.Caddyfile("", `
			rate_limit {
				zone long {
					key {header.Authorization}
					events 5
					window 1h
				}
				zone short {
					key {header.Authorization}
					events 1
					window 200ms
				}
				`+store+`
			}
			respond ok`))
		client := harness.NewClient(t, "")
		admitted, refused := 0, 0
		patient.Until(t, "the long limit to be used up", func() bool {
			a := s.Get(client, "/", "Authorization", "me")
			if a.Status == http.StatusOK {
				admitted++
				return admitted == long
			}
			refused++
			if q, _, err := harness.RateLimit(a.Header); err != nil || q.Zone != "short" {
				t.Fatalf("after %d admitted: refused by zone %q, error %v, want short", admitted, q.Zone, err)
			}
			return false
		})
		if refused < long {
			t.Errorf("%d refusals on the way, too few to prove anything", refused)
		}
		// Both limits are used up, or the long one alone is. Its wait is the longer one.
		a := s.Get(client, "/", "Authorization", "me")
		if q, _, err := harness.RateLimit(a.Header); a.Status != http.StatusTooManyRequests || err != nil || q.Zone != "long" {
			t.Errorf("after %d: status %d by zone %q, error %v; want 429 by long", long, a.Status, q.Zone, err)
		}
		t.Logf("%d admitted, %d refused on the way", admitted, refused)
		s.Sound(t)
	})
}

// TestIssue70AllOrNothing is mholt/caddy-ratelimit#70: five for each client, and ten in all. A
// client that sends ten requests may take five of the ten and no more.
func TestIssue70AllOrNothing(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.Caddyfile("", `
			rate_limit {
				zone a {
					key {header.X-Client}
					events 5
					window 1h
				}
				zone b {
					events 10
					window 1h
				}
				`+store+`
			}
			respond ok`))
		client := harness.NewClient(t, "")
		for _, step := range []struct {
			client string
			want   int
		}{{"greedy", 5}, {"modest", 5}, {"late", 0}} {
			if got := s.Admitted(client, 10, "/", "X-Client", step.client); got != step.want {
				t.Errorf("%s client: %d of 10 admitted, want %d", step.client, got, step.want)
			}
		}
		a := s.Get(client, "/", "X-Client", "late")
		if q, _, err := harness.RateLimit(a.Header); err != nil || q.Zone != "b" {
			t.Errorf("the late client is refused by zone %q, error %v, want b", q.Zone, err)
		}
		s.Sound(t)
	})
}

// TestConcurrentExactly100: 500 requests come at once at a limit of 100.
func TestConcurrentExactly100(t *testing.T) {
	patient.BesideOthers(t)
	const requests, limit = 500, 100
	redisServer := redistest.Start(t)
	text := ""
	for _, algorithm := range algorithmNames {
		window := quietWindow(algorithm)
		for _, path := range []string{"memory", "one", "two"} {
			store := harness.Redis(redisServer.Addr())
			if path == "memory" {
				store = harness.Memory
			}
			text += `
				handle /` + path + `/` + algorithm + ` {
					rate_limit {
						zone ` + path + `-` + algorithm + ` {
							algorithm ` + algorithm + `
							events 100
							window ` + window.String() + `
						}
						` + store + `
					}
					respond ok
				}`
		}
	}
	both := []*harness.Server{harness.StartCaddy(t, harness.Caddyfile("", text)), harness.StartCaddy(t, harness.Caddyfile("", text))}
	for _, algorithm := range algorithmNames {
		for path, servers := range map[string][]*harness.Server{"memory": both[:1], "one": both[:1], "two": both} {
			t.Run(algorithm+"/"+path, func(t *testing.T) {
				began := time.Now()
				got := together(t, requests, func(i int) string {
					return servers[i%len(servers)].URL("/" + path + "/" + algorithm)
				})
				elapsed := time.Since(began)
				t.Logf("%d admitted, %d refused in %v", got[http.StatusOK], got[http.StatusTooManyRequests], elapsed)
				// A bucket of 100 per hour has another token after 36 s.
				if elapsed > 30*time.Second {
					t.Skipf("%v is too long to judge a token bucket", elapsed)
				}
				if got[http.StatusOK] != limit || got[http.StatusTooManyRequests] != requests-limit {
					t.Errorf("answers by status: %v, want %d times 200 and %d times 429", got, limit, requests-limit)
				}
			})
		}
	}
	for _, s := range both {
		s.Sound(t)
	}
}

// quietWindow is a window of about an hour. Fixed windows begin at multiples of their
// length; this one ends no sooner than in a few minutes.
func quietWindow(algorithm string) time.Duration {
	window := time.Hour
	for algorithm == "fixed_window" && window-time.Duration(time.Now().UnixNano())%window < 5*time.Minute {
		window += 7 * time.Minute
	}
	return window
}

// together sends requests all at once, each on a connection of its own, and counts the answers by
// status.
func together(t *testing.T, requests int, url func(i int) string) map[int]int {
	t.Helper()
	client := harness.NewClient(t, "")
	answers := make([]harness.Answer, requests)
	errs := make([]error, requests)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			<-start
			answers[i], errs[i] = harness.Send(client, url(i))
		})
	}
	close(start)
	group.Wait()
	got := make(map[int]int)
	for i := range requests {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		got[answers[i].Status]++
	}
	return got
}
