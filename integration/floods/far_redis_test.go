package floods_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

const (
	farTimeout = 50 * time.Millisecond
	farLimit   = 10                   // per second
	farPause   = 5 * time.Millisecond // until a client sends its next request

	// farScale stretches all times in "make test" alike: round trip, timeout, window and pauses.
	// On a busy machine, a process may have to wait for a processor for longer than 50 ms.
	farScale = 10

	farLine = "the timeout is short for the round trip to redis"
)

// TestFloodWithAFarRedis floods one key through two instances whose Redis is far away. No more than
// the limit gets through, except for requests that failed open and were counted as such. Nothing
// fails open where the timeout has room for two round trips. The breaker stays closed, no
// connection is thrown away, and the log says when Redis is too far.
func TestFloodWithAFarRedis(t *testing.T) {
	patient.BesideOthers(t)
	for _, c := range []struct {
		trip  time.Duration
		open  bool // requests may fail open
		warns bool
	}{
		{5 * time.Millisecond, false, false},
		{16 * time.Millisecond, false, false},
		{22 * time.Millisecond, false, true},
		{40 * time.Millisecond, true, true},
	} {
		t.Run(c.trip.String(), func(t *testing.T) {
			f := startFarFleet(t, c.trip, deep.Steps(farScale, 1))
			if c.warns {
				for _, s := range f.servers {
					patient.Until(t, "the log to say that Redis is far", func() bool { return strings.Contains(string(s.Log()), farLine) })
				}
			}
			rounds := deep.Steps(1, 5)
			for tries := 0; rounds > 0 && tries < deep.Steps(2, 25); tries++ {
				if f.flood(t, c.open) {
					rounds--
				}
			}
			if rounds > 0 {
				t.Logf("this machine was too busy to show it in %d rounds", rounds)
			}
			for _, s := range f.servers {
				if says := strings.Count(string(s.Log()), farLine); c.warns && says == 0 || says > 2 {
					t.Errorf("%d lines say that Redis is far", says)
				}
			}
		})
	}
}

// farFleet is two instances, and a Redis behind a proxy that makes it seem far away.
type farFleet struct {
	proxy   *faultproxy.Proxy
	servers []*harness.Server
	client  *http.Client
	arrived atomic.Int64 // at the upstream
	trip    time.Duration
	timeout time.Duration
	window  time.Duration
	pause   time.Duration
}

func startFarFleet(t *testing.T, trip time.Duration, scale int) *farFleet {
	f := &farFleet{
		client: harness.NewClient(t, ""),
		trip:   trip * time.Duration(scale), timeout: farTimeout * time.Duration(scale), window: time.Second * time.Duration(scale),
		pause: farPause * time.Duration(scale),
	}
	f.proxy = faultproxy.Start(t, redistest.Start(t).Addr())
	f.proxy.Delay(f.trip)
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.arrived.Add(1) }))
	t.Cleanup(upstream.Close)
	config := harness.Caddyfile("metrics", `
		handle /metrics {
			metrics
		}
		handle /ready {
			respond ready
		}
		handle {
			rate_limit {
				zone flood {
					key {header.X-Api-Key}
					algorithm token_bucket `+strconv.Itoa(farLimit)+`/`+f.window.String()+`
				}
				store redis {
					address `+f.proxy.Addr()+`
					timeout `+f.timeout.String()+`
				}
			}
			reverse_proxy `+upstream.Listener.Addr().String()+`
		}`)
	for range 2 {
		s := harness.StartCaddy(t, config)
		f.servers = append(f.servers, s)
		patient.Until(t, "Redis to decide", func() bool {
			a, err := harness.Send(f.client, s.URL("/"), "X-Api-Key", "first")
			return err == nil && a.Header.Get("RateLimit") != ""
		})
	}
	return f
}

// flood makes one round with a key of its own. It returns false if the machine was too busy for
// the round to prove anything.
func (f *farFleet) flood(t *testing.T, mayOpen bool) bool {
	t.Helper()
	key := "client" + strconv.FormatInt(time.Now().UnixNano(), 36)
	stop := make(chan struct{})
	var all, ready sync.WaitGroup
	var opened atomic.Int64
	begin := make(chan struct{})
	for i := range deep.Steps(40, 100) {
		ready.Add(1)
		all.Go(func() {
			client, s := harness.NewClient(t, ""), f.servers[i%len(f.servers)]
			_, err := harness.Send(client, s.URL("/ready")) // opens the connection
			ready.Done()
			<-begin
			for err == nil {
				select {
				case <-stop:
					return
				default:
				}
				var a harness.Answer
				a, err = harness.Send(client, s.URL("/"), "X-Api-Key", key)
				if err == nil && a.Status == http.StatusOK && a.Header.Get("RateLimit") == "" {
					opened.Add(1)
				}
				time.Sleep(f.pause)
			}
			t.Error(err)
		})
	}
	stalled := make([]time.Duration, len(f.servers)) // the longest time that each took where Redis is not asked
	for i, s := range f.servers {
		client := harness.NewClient(t, "")
		all.Go(func() {
			<-begin
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked := time.Now()
				if _, err := harness.Send(client, s.URL("/ready")); err != nil {
					t.Error(err)
					return
				}
				stalled[i] = max(stalled[i], time.Since(asked))
				time.Sleep(farPause)
			}
		})
	}
	ready.Wait()
	before, arrived, closed := f.metrics(), f.arrived.Load(), f.proxy.Closed()
	f.proxy.Slowest()
	begun := time.Now()
	close(begin)
	time.Sleep(time.Duration(deep.Steps(2, 3)) * time.Second)
	close(stop)
	all.Wait()
	took := time.Since(begun)
	after := f.metrics()
	passed := int(f.arrived.Load() - arrived)
	slowest := f.proxy.Slowest()
	diff := func(name string) int { return int(after[name] - before[name]) }
	failed := diff("failed_open")
	t.Logf("%v away: %d passed in %v, %d failed open, slowest reply of Redis %v, of a Caddy %v, %d connections thrown away",
		f.trip, passed, took, failed, slowest, slices.Max(stalled), f.proxy.Closed()-closed)
	if int(opened.Load()) != failed {
		t.Errorf("clients saw %d that nobody decided, the metrics tell of %d", opened.Load(), failed)
	}
	if most := farLimit + int(took*farLimit/f.window) + 1 + failed; passed > most {
		t.Errorf("%d passed, want at most %d", passed, most)
	}
	// A quarter of the time that the trip leaves is for this machine. A longer stall may have
	// been the machine. On an idle machine, only Redis may be slow.
	slack := (f.timeout - f.trip) / 4
	if slowest > f.trip+slack || !deep.Run() && slices.Max(stalled) > slack {
		return false
	}
	if failed > 0 && !mayOpen {
		t.Errorf("%d failed open", failed)
	}
	if open := diff("open"); open > 0 {
		t.Errorf("the breaker opened: %d requests were not asked for", open)
	}
	if n := f.proxy.Closed() - closed; n > 0 && !mayOpen {
		t.Errorf("%d connections were thrown away", n)
	}
	return true
}

// metrics sums up the metrics of both instances: failed_open, and open, the number of errors of that
// kind.
func (f *farFleet) metrics() map[string]float64 {
	sum := make(map[string]float64)
	for _, s := range f.servers {
		for text := range strings.Lines(s.Scrape(f.client)) {
			name, value, _ := strings.Cut(strings.TrimSpace(text), "} ")
			n, _ := strconv.ParseFloat(value, 64)
			switch {
			case strings.HasPrefix(name, "caddy_rate_limit_decisions_total{") && strings.Contains(name, `outcome="failed_open"`):
				sum["failed_open"] += n
			case strings.HasPrefix(name, "caddy_rate_limit_store_errors_total{") && strings.Contains(name, `kind="open"`):
				sum["open"] += n
			}
		}
	}
	return sum
}
