package faults_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

const (
	// slowest bounds the time of a request while Redis is away, on an idle machine: the 50 ms
	// that a decision may take, and plenty.
	slowest = 450 * time.Millisecond

	// backWithin is how soon Redis decides again when it is back, also on an idle machine.
	backWithin = 2 * time.Second
)

func TestRedisDownAllow(t *testing.T) { testRedisDown(t, "allow", http.StatusOK) }

func TestRedisDownDeny(t *testing.T) { testRedisDown(t, "deny", http.StatusServiceUnavailable) }

// testRedisDown kills Redis, starts it again, freezes it and thaws it, all under steady load.
func testRedisDown(t *testing.T, policy string, down int) {
	patient.BesideOthers(t)
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, outageConfig(policy), "REDIS="+redisServer.Addr())
	load := startLoad(t, s)
	load.more(200)

	for n, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"killed", redisServer.Kill, redisServer.Restart},
		{"frozen", redisServer.Freeze, redisServer.Thaw},
	} {
		from := load.more(200)
		outage.begin()
		begun := time.Now()
		load.more(800) // about two seconds of them
		ending := time.Now()
		answers := firstPong(t, redisServer.Addr())
		outage.end()
		back := <-answers
		patient.Until(t, "the log to say that Redis is back", func() bool {
			return saysBack(s, n+1)
		})
		to := load.more(200)

		samples := load.slice(from, to)
		checkOutage(t, outage.name, samples, begun, ending, down)
		recovery := time.Duration(0)
		for _, sample := range samples {
			if !sample.decided {
				recovery = max(recovery, sample.sent.Sub(back))
			}
		}
		worst, p99 := slowness(samples)
		t.Logf("%s: %d requests, slowest %v, 99 %% within %v; decided again %v after Redis was back",
			outage.name, len(samples), worst, p99, recovery)
		patient.Soon(t, outage.name+": the slowest request", worst, slowest)
		patient.Soon(t, outage.name+": deciding again", recovery, backWithin)
	}
	load.stop()
	checkOutageLog(t, s, 2)
}

// TestRedisDownAtStart: a Caddy that starts before Redis works, and finds Redis later.
func TestRedisDownAtStart(t *testing.T) {
	patient.BesideOthers(t)
	redisServer := redistest.Start(t)
	redisServer.Kill()
	s := harness.StartCaddy(t, outageConfig("allow"), "REDIS="+redisServer.Addr())
	load := startLoad(t, s)
	down := load.slice(0, load.more(100))
	for _, sample := range down {
		if sample.status != http.StatusOK || sample.decided {
			t.Fatalf("while Redis is down: %+v, want 200 and nothing decided", sample)
		}
	}
	answers := firstPong(t, redisServer.Addr())
	redisServer.Restart()
	back := <-answers
	patient.Until(t, "Redis to decide", func() bool {
		all := load.slice(0, load.more(1))
		return all[len(all)-1].decided
	})
	recovery := time.Duration(0)
	for _, sample := range load.slice(0, load.more(100)) {
		if !sample.decided {
			recovery = max(recovery, sample.sent.Sub(back))
		}
	}
	t.Logf("Redis decides %v after it was back", recovery)
	patient.Soon(t, "deciding again", recovery, backWithin)
	patient.Until(t, "the log to say that Redis is back", func() bool {
		return saysBack(s, 1)
	})
	load.stop()
	checkOutageLog(t, s, 1)
}

// firstPong finds out when Redis answers again, which is some time before Restart returns.
func firstPong(t *testing.T, address string) <-chan time.Time {
	answered := make(chan time.Time, 1)
	go func() {
		defer close(answered)
		err := childprocess.Poll(patient.Patience, func(context.Context) error {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("PING\r\n")); err != nil {
				return err
			}
			reply := make([]byte, 16)
			if n, err := conn.Read(reply); string(reply[:n]) != "+PONG\r\n" {
				return fmt.Errorf("answer %q, %w", reply[:n], err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("waiting for Redis to answer: %v", err)
		}
		answered <- time.Now()
	}()
	return answered
}

func outageConfig(policy string) string {
	return harness.Caddyfile("", `
		rate_limit {
			zone workers {
				key {header.X-Api-Key}
				events 10
				window 1s
			}
			store redis {
				address {$REDIS}
				`+harness.Timeout()+`
			}
			on_store_error `+policy+`
		}
		respond ok`)
}

// checkOutage checks the answers of one outage: before, during and after it.
func checkOutage(t *testing.T, name string, samples []sample, begun, ending time.Time, down int) {
	t.Helper()
	undecided, refused := 0, 0
	for _, s := range samples {
		during := s.sent.After(begun) && s.sent.Add(s.took).Before(ending)
		switch {
		case s.err != nil:
			t.Fatalf("%s: %v", name, s.err)
		// A refusal is remembered for a second.
		case s.decided && during && (s.status == http.StatusOK || s.sent.After(begun.Add(time.Second))):
			t.Fatalf("%s: an answer has RateLimit headers: %+v", name, s)
		case s.decided && s.status == http.StatusTooManyRequests && s.retryAfter >= 1:
			refused++
		case s.decided && s.status == http.StatusOK && s.retryAfter == 0:
		case !s.decided && s.status == down && (s.retryAfter >= 1) == (down != http.StatusOK):
			undecided++
		default:
			t.Fatalf("%s: an answer that should not be: %+v", name, s)
		}
	}
	if undecided < 200 || refused == 0 {
		t.Errorf("%s: %d requests while Redis was away, %d refused by it, too few to prove anything", name, undecided, refused)
	}
}

const (
	goneLine = "the rate limit store does not answer"
	backLine = "the rate limit store answers again"
)

// saysBack reports whether the last line about the store in the log says that Redis is back,
// after a number of outages.
func saysBack(s *harness.Server, outages int) bool {
	ours := withoutRefusals(s)
	return len(ours) > 0 && ours[len(ours)-1].Message == backLine && harness.CountLines(ours, goneLine) >= outages
}

// checkOutageLog: there is one line when Redis goes, one line when it is back, and none per
// request, neither from this module nor from Caddy nor from a library that writes past Caddy's
// logger.
func checkOutageLog(t *testing.T, s *harness.Server, outages int) {
	t.Helper()
	// On a busy machine, Redis may now and then be later than 50 ms without an outage.
	const handful = 3
	all, strange := s.Lines()
	ours := withoutRefusals(s)
	gone, back := harness.CountLines(ours, goneLine), harness.CountLines(ours, backLine)
	if gone < outages || gone > outages+handful || back != gone && back != gone-1 || len(ours) != gone+back {
		t.Errorf("%d lines say that Redis is gone, %d that it is back, of %d in all; want %d, %d and no more: %v",
			gone, back, len(ours), outages, outages, ours)
	}
	bad := 0
	for _, l := range all {
		if l.Level == "error" {
			bad++
		}
	}
	if bad != gone {
		t.Errorf("%d error lines, want the %d that Redis is gone", bad, gone)
	}
	if len(strange) > 0 {
		t.Errorf("%d lines that are no JSON, the first: %s", len(strange), strange[0])
	}
	t.Logf("%d lines say that Redis is gone, %d that it is back, for %d outages", gone, back, outages)
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

// load is clients that send 50 requests per second each. There are 8 of them unless a test says
// otherwise.
type load struct {
	t       *testing.T
	mu      sync.Mutex
	samples []sample
	done    chan struct{}
	group   sync.WaitGroup
	stop    func() // calling it again does nothing
}

func startLoad(t *testing.T, s *harness.Server) *load { return startLoadOf(t, s, 8) }

// startLoadOf is startLoad with another number of clients.
func startLoadOf(t *testing.T, s *harness.Server, clients int) *load {
	l := &load{t: t, done: make(chan struct{})}
	l.stop = sync.OnceFunc(func() {
		close(l.done)
		l.group.Wait()
	})
	t.Cleanup(l.stop)
	for worker := range clients {
		client := harness.NewClient(t, "")
		l.group.Go(func() {
			ticker := time.NewTicker(time.Second / 50)
			defer ticker.Stop()
			for {
				select {
				case <-l.done:
					return
				case <-ticker.C:
					l.ask(client, s.URL("/"), strconv.Itoa(worker))
				}
			}
		})
	}
	return l
}

func (l *load) ask(client *http.Client, url, key string) {
	a, err := harness.Send(client, url, "X-Api-Key", key)
	fields := strings.Join(a.Header["Ratelimit"], "") + strings.Join(a.Header["Ratelimit-Policy"], "")
	wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.samples = append(l.samples, sample{
		sent: a.Sent, took: a.Done.Sub(a.Sent), status: a.Status, decided: fields != "", retryAfter: wait, err: err,
	})
}

// more waits until n more requests are answered, and returns how many are answered in all.
func (l *load) more(n int) (all int) {
	l.t.Helper()
	before := -1
	patient.Until(l.t, "requests to be answered", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if all = len(l.samples); before < 0 {
			before = all
		}
		return all >= before+n
	})
	return all
}

func (l *load) slice(from, to int) []sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.samples[from:to])
}

// slowness returns the longest time of a request, and the time below which 99 % of them stay.
func slowness(samples []sample) (worst, p99 time.Duration) {
	times := make([]time.Duration, len(samples))
	for i, s := range samples {
		times[i] = s.took
	}
	slices.Sort(times)
	return times[len(times)-1], times[len(times)*99/100]
}
