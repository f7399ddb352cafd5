package integration_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	redisclient "github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// startPair runs two instances with the same config.
func startPair(t *testing.T, config string, variables ...string) []*server {
	t.Helper()
	return []*server{startCaddy(t, config, variables...), startCaddy(t, config, variables...)}
}

// fleet is either one Caddy that counts in memory, which is both the first and the last, or two
// instances that share a Redis.
type fleet struct {
	store       string // as a config names it
	first, last *server
}

// eachFleet runs a test with either kind of fleet.
func eachFleet(t *testing.T, config func(store string) string, test func(t *testing.T, f fleet), variables ...string) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := startCaddy(t, config(memory), variables...)
		test(t, fleet{memory, s, s})
		s.sound(t)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		store := redis(redistest.Start(t).Addr())
		both := startPair(t, config(store), variables...)
		test(t, fleet{store, both[0], both[1]})
		both[0].sound(t)
		both[1].sound(t)
	})
}

// limited is a route of a Caddyfile: requests to the zone's path meet the zone. Requests to the
// same path below /peek are only told how much of the limit is left.
func limited(zone, options, store, then string) string {
	route := func(path, options, then string) string {
		return "handle " + path + zone + " {\nrate_limit {\nzone " + zone + " {\n" + options + "\n}\n" + store + "}\n" + then + "\n}\n"
	}
	return route("/", options, then) + route("/peek/", options+"\ncost 0", "respond ok")
}

// left asks how much of a zone is left, and charges nothing.
func (s *server) left(client *http.Client, zone string) int64 {
	s.t.Helper()
	a := s.get(client, "/peek/"+zone)
	q, ok, err := rateLimit(a.header)
	if !ok || err != nil || q.zone != zone || a.status != http.StatusOK {
		s.t.Fatalf("peek at %s: status %d, %+v, error %v", zone, a.status, q, err)
	}
	return q.remaining
}

// awaitLeft waits until that much of a zone is left.
func (s *server) awaitLeft(client *http.Client, zone string, want int64) {
	s.t.Helper()
	patient.UntilEqual(s.t, "what is left of zone "+zone, func() int64 { return s.left(client, zone) }, want)
}

// waiting returns how many requests this module makes wait, according to Caddy's goroutines.
func (s *server) waiting() int {
	s.t.Helper()
	stacks, err := s.stacks()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(stacks, "limiter.(*retryWait).sleep(")
}

func (s *server) awaitWaiting(want int) {
	s.t.Helper()
	patient.Until(s.t, "requests to wait, or to leave", func() bool { return s.waiting() == want })
}

// scriptCalls returns how many calls of a script Redis has seen: decisions, adjustments and
// renewals.
func scriptCalls(t *testing.T, r *redistest.Server) int {
	t.Helper()
	info, err := r.Admin().InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.SplitSeq(info["Commandstats"]["cmdstat_evalsha"], ",") {
		if calls, ok := strings.CutPrefix(field, "calls="); ok {
			n, err := redisclient.NewCmdResult(calls, nil).Int()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// pending is a request in progress.
type pending struct {
	t      *testing.T
	leave  context.CancelFunc // hangs up
	done   chan struct{}
	answer answer
	err    error
}

// begin sends a request on a connection of its own, and does not wait for the answer.
func (s *server) begin(path string, header ...string) *pending {
	ctx, leave := context.WithCancel(s.t.Context())
	p := &pending{t: s.t, leave: leave, done: make(chan struct{})}
	client := newClient(s.t, "")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(path), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	go func() {
		defer close(p.done)
		defer leave()
		p.answer.sent = time.Now()
		var response *http.Response
		if response, p.err = client.Do(request); p.err != nil {
			return
		}
		defer response.Body.Close()
		p.answer.status, p.answer.header = response.StatusCode, response.Header
		var body []byte
		body, p.err = io.ReadAll(response.Body)
		p.answer.body, p.answer.done = string(body), time.Now()
	}()
	s.t.Cleanup(func() {
		leave()
		<-p.done
	})
	return p
}

// result waits for the answer.
func (p *pending) result() answer {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patient.Patience):
		p.t.Fatalf("no answer within %v", patient.Patience)
	}
	if p.err != nil {
		p.t.Fatal(p.err)
	}
	return p.answer
}

func (p *pending) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
