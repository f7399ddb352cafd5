package caddyratelimit_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestExplainWaitsAndBans: explain says how long a queue holds a request, and with which refusal a ban begins. The
// waits for a zone and for the answer are one.
func TestExplainWaitsAndBans(t *testing.T) {
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, `http://`+address+` {
		handle /queue {
			rate_limit {
				zone queue {
					algorithm leaky_bucket 2/1h
					mode queue
					burst 3
					max_wait 1h
				}
			}
			respond ok
		}
		handle /ban {
			rate_limit {
				zone ban {
					key {client_ip}
					rate 1/10s
					ban 1d after 2 refusals in 1m
				}
			}
			respond ok
		}
	}`)
	get := func(path string) int {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return seconds
	}
	ask := func(path string) adminapi.Explanation {
		return explain(t, adminapi.Request{URL: "http://" + address + path})
	}
	const hour, day = 3600, 24 * 3600

	get("/queue")
	if x := ask("/queue"); !x.Passes || x.Wait < hour/2-60 || x.Wait > hour/2 || x.Zones[0].Wait != x.Wait {
		t.Errorf("behind one: %+v", x)
	}
	get("/ban")
	if told := get("/ban"); told > 10 {
		t.Errorf("the first refusal: %d", told)
	}
	x := ask("/ban")
	if state := x.Zones[0].State; x.Passes || x.RetryAfter != day || state.RetryAfter != day || !state.Refusals.Begins || state.Refusals.NextBan != day {
		t.Errorf("before the ban: %+v, %+v", x, state)
	}
	if told := get("/ban"); told != day {
		t.Errorf("the second refusal: Retry-After %d", told)
	}
	if x := ask("/ban"); x.RetryAfter > day || x.RetryAfter < day-60 || x.Zones[0].State.Refusals.Begins {
		t.Errorf("during the ban: %+v", x)
	}
}
