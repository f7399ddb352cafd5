package integration_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestIssue10AllOrNothing: two limits on one client, as in mholt/caddy-ratelimit#10. A client
// that hammers must get the whole long limit at the pace of the short one: what the short limit
// refuses must not count in the long one.
func TestIssue10AllOrNothing(t *testing.T) {
	t.Parallel()
	const long = 5
	eachStore(t, func(t *testing.T, store string) {
		s := startCaddy(t, caddyfile("", `
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
		client := newClient(t, "")
		admitted, refused := 0, 0
		patient.Until(t, "the long limit to be used up", func() bool {
			a := s.get(client, "/", "Authorization", "me")
			if a.status == http.StatusOK {
				admitted++
				return admitted == long
			}
			refused++
			if q, _, err := rateLimit(a.header); err != nil || q.zone != "short" {
				t.Fatalf("after %d admitted: refused by zone %q, error %v, want short", admitted, q.zone, err)
			}
			return false
		})
		if refused < long {
			t.Errorf("%d refusals on the way, too few to prove anything", refused)
		}
		// Both limits are used up, or the long one alone is. Its wait is the longer one.
		a := s.get(client, "/", "Authorization", "me")
		if q, _, err := rateLimit(a.header); a.status != http.StatusTooManyRequests || err != nil || q.zone != "long" {
			t.Errorf("after %d: status %d by zone %q, error %v; want 429 by long", long, a.status, q.zone, err)
		}
		t.Logf("%d admitted, %d refused on the way", admitted, refused)
		s.sound(t)
	})
}

// TestIssue70AllOrNothing is mholt/caddy-ratelimit#70: five for each client, and ten in all. A
// client that sends ten requests may take five of the ten and no more.
func TestIssue70AllOrNothing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		s := startCaddy(t, caddyfile("", `
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
		client := newClient(t, "")
		for _, step := range []struct {
			client string
			want   int
		}{{"greedy", 5}, {"modest", 5}, {"late", 0}} {
			if got := s.admitted(client, 10, "/", "X-Client", step.client); got != step.want {
				t.Errorf("%s client: %d of 10 admitted, want %d", step.client, got, step.want)
			}
		}
		a := s.get(client, "/", "X-Client", "late")
		if q, _, err := rateLimit(a.header); err != nil || q.zone != "b" {
			t.Errorf("the late client is refused by zone %q, error %v, want b", q.zone, err)
		}
		s.sound(t)
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
			store := redis(redisServer.Addr())
			if path == "memory" {
				store = memory
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
	both := []*server{startCaddy(t, caddyfile("", text)), startCaddy(t, caddyfile("", text))}
	for _, algorithm := range algorithmNames {
		for path, servers := range map[string][]*server{"memory": both[:1], "one": both[:1], "two": both} {
			t.Run(algorithm+"/"+path, func(t *testing.T) {
				began := time.Now()
				got := together(t, requests, func(i int) string {
					return servers[i%len(servers)].url("/" + path + "/" + algorithm)
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
		s.sound(t)
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
