package faults_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// outageLength is how long Redis is dead. The project promises a minute at 500 requests per
// second: OUTAGE=60s go test -run TestOutageOfAFleet ./integration
func outageLength(t *testing.T) (length time.Duration, clients int) {
	t.Helper()
	text := os.Getenv("OUTAGE")
	if text == "" {
		return 7 * time.Second, 2
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("OUTAGE: %v", err)
	}
	return length, 5
}

// TestOutageOfAFleet kills the Redis of two instances under load. Each goes on with half of the
// limit, so the upstream sees no more than the limit. Each logs two lines.
func TestOutageOfAFleet(t *testing.T) {
	patient.BesideOthers(t)
	const limit = 20
	length, clients := outageLength(t)
	var arrived atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(upstream.Close)
	redisServer := redistest.Start(t)
	config := harness.Caddyfile("", `
		rate_limit {
			zone all {
				events `+strconv.Itoa(limit)+`
				window 1s
			}
			store redis {
				address {$REDIS}
				`+harness.Timeout()+`
			}
			on_store_error local
		}
		reverse_proxy {$UPSTREAM}`)
	var fleet []*harness.Server
	for range 2 {
		fleet = append(fleet, harness.StartCaddy(t, config, "REDIS="+redisServer.Addr(), "UPSTREAM="+upstream.Listener.Addr().String()))
	}
	awaitFleet(t, redisServer, 2)
	var loads []*load
	for _, s := range fleet {
		loads = append(loads, startLoadOf(t, s, clients)) // each client sends 50 requests per second
	}
	for _, l := range loads {
		l.more(50)
	}

	redisServer.Kill()
	begun, before := time.Now(), arrived.Load()
	time.Sleep(length) // the outage itself
	ending, after := time.Now(), arrived.Load()
	windows := math.Ceil(ending.Sub(begun).Seconds())
	admitted, refused := 0, 0
	for n, l := range loads {
		ours := 0
		for _, s := range l.slice(0, l.more(1)) {
			switch during := s.sent.After(begun) && s.sent.Add(s.took).Before(ending); {
			case s.err != nil:
				t.Fatal(s.err)
			case !s.decided || s.status != http.StatusOK && s.status != http.StatusTooManyRequests:
				t.Fatalf("an answer that should not be: %+v", s)
			case during && s.status == http.StatusOK:
				ours++
			case during:
				refused++
			}
		}
		if ours > int(windows)*limit/2 {
			t.Errorf("Caddy %d admitted %d in %v of its own, want at most %d in each second", n+1, ours, windows, limit/2)
		}
		admitted += ours
	}
	atUpstream := int(after - before)
	t.Logf("%v without Redis: %d admitted, %d refused, %d seen by the upstream; the limit is %d", ending.Sub(begun), admitted, refused, atUpstream, int(windows)*limit)
	underWay := 2 * clients // admitted by Redis, and seen by the upstream after its death
	if atUpstream > int(windows)*limit+underWay {
		t.Errorf("the upstream saw %d requests in %v seconds, want at most %d in each", atUpstream, windows, limit)
	}
	if float64(admitted) < ending.Sub(begun).Seconds()*limit/2 || refused == 0 {
		t.Errorf("%d admitted and %d refused while Redis was dead, too few to be a limit of %d a second", admitted, refused, limit)
	}

	redisServer.Restart()
	for n, s := range fleet {
		patient.Until(t, "the log to say that Redis is back", func() bool { return saysBack(s, 1) })
		loads[n].stop()
		checkOutageLog(t, s, 1)
	}
}

// awaitFleet waits until all instances know of each other. Each one reports every few seconds that
// it is there, and then learns how many there are. So all know when each has reported after the
// last one came.
func awaitFleet(t *testing.T, redisServer *redistest.Server, size int64) {
	t.Helper()
	ctx := context.Background()
	const lifetime = 15_000
	complete := int64(0)
	patient.Until(t, "the instances to know of each other", func() bool {
		members := redisServer.Admin().ZRangeWithScores(ctx, "rl:instances", 0, -1).Val()
		if int64(len(members)) != size {
			return false
		}
		if complete == 0 {
			complete = redisServer.Admin().Time(ctx).Val().UnixMilli()
		}
		for _, m := range members {
			if int64(m.Score) <= complete+lifetime {
				return false
			}
		}
		return true
	})
}

// TestOnStoreErrorOfZones: zones on one route can have different values of on_store_error, and show the
// share of the limit that the instance applies.
func TestOnStoreErrorOfZones(t *testing.T) {
	t.Parallel()
	dead := redistest.FreePort(t)
	zone := func(name string, events int, policy string) string {
		return fmt.Sprintf("zone %s {\n events %d\n window 1h\n %s\n }\n", name, events, policy)
	}
	route := func(path, zones, more string) string {
		return "handle " + path + " {\n rate_limit {\n" + zones + more + "\n}\n respond ok\n}\n"
	}
	s := harness.StartCaddy(t, harness.Caddyfile(`
	rate_limit {
		store redis {
			address 127.0.0.1:`+strconv.Itoa(dead)+`
		}
		on_store_error local
		instances 4
	}`,
		route("/local", zone("a", 40, ""), "")+
			route("/two", zone("b", 12, "")+zone("c", 400, ""), "")+
			route("/mixed", zone("d", 1, "on_store_error allow")+zone("e", 8, ""), "")+
			route("/denied", zone("f", 40, "")+zone("g", 40, "on_store_error deny"), "")+
			route("/allowed", zone("h", 0, ""), "on_store_error allow")+
			route("/instances", zone("i", 40, ""), "instances 10")))
	client := harness.NewClient(t, "")
	for _, c := range []struct {
		path     string
		admitted int
		then     int
		policy   string
	}{
		{"/local", 10, 429, `"a";q=10;w=3600`},
		{"/two", 3, 429, `"b";q=3;w=3600, "c";q=100;w=3600`},
		{"/mixed", 2, 429, `"e";q=2;w=3600`},
		{"/denied", 0, 503, ""},
		{"/allowed", 20, 200, ""},
		{"/instances", 4, 429, `"i";q=4;w=3600`},
	} {
		admitted, last := 0, harness.Answer{}
		for range 20 {
			if last = s.Get(client, c.path); last.Status == http.StatusOK {
				admitted++
			}
		}
		if admitted != c.admitted || last.Status != c.then || last.Header.Get("RateLimit-Policy") != c.policy {
			t.Errorf("%s: %d admitted, then %d with policy %s; want %d, %d and %s",
				c.path, admitted, last.Status, last.Header.Get("RateLimit-Policy"), c.admitted, c.then, c.policy)
		}
		if (last.Header.Get("Retry-After") != "") != (c.then != http.StatusOK) {
			t.Errorf("%s: Retry-After %q with status %d", c.path, last.Header.Get("Retry-After"), last.Status)
		}
	}
	lines := slices.DeleteFunc(withoutRefusals(s), func(l harness.Line) bool { return strings.HasPrefix(l.Message, "it never refuses: ") })
	if len(lines) != 1 || lines[0].Message != goneLine {
		t.Errorf("want one line, for the one store of all routes: %v", lines)
	}
}

// withoutRefusals returns this module's lines about anything but refusals, and but what is said of the
// store at start.
func withoutRefusals(s *harness.Server) []harness.Line {
	return slices.DeleteFunc(s.LinesOf(harness.OurLogger), func(l harness.Line) bool {
		return strings.HasPrefix(l.Message, "rate limit exceeded") || l.Message == "the rate limit store answers" ||
			strings.HasPrefix(l.Message, "until the rate limit store answers")
	})
}
