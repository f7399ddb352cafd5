package floods_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

const (
	// fullLimit is how much a client may have per day of each zone of a full Redis. fullShare is
	// what each of two instances gives the client where Redis has no place for it.
	fullLimit = 5
	fullShare = fullLimit / 2

	// fullClients is how many clients of each sort a zone has. Each one sends each instance more
	// requests than the limit allows.
	fullClients = 3
	fullAsks    = fullLimit + 1
)

// The sorts of clients: Redis has counted the whole limit of a client, or one request, or
// nothing.
const (
	usedUp = "used up"
	known  = "known"
	fresh  = "fresh"
)

// fullZone is a zone of a fleet whose Redis is full.
type fullZone struct{ policy, algorithm string }

var fullZones = []fullZone{
	{"allow", "token_bucket"},
	{"allow", "sliding_window_log"},
	{"deny", "token_bucket"},
	{"deny", "sliding_window_log"},
}

func (z fullZone) path() string { return "/" + z.policy + "/" + z.algorithm }

// grows reports whether each charge of a client needs more memory, which a full Redis does not
// have. A bucket keeps its size.
func (z fullZone) grows() bool { return z.algorithm == "sliding_window_log" }

// full is how many requests of a client pass while Redis is full all the time. What Redis has
// counted before stays, and a client that has no place in Redis gets the share of each instance.
func (z fullZone) full(sort string) int {
	switch {
	case sort == fresh:
		return 2 * fullShare
	case sort == known && z.grows():
		return 1 + 2*fullShare
	}
	return fullLimit
}

// most is how many requests pass if Redis has room again before the day is over. Redis counts
// what it has charged itself, and knows nothing of the shares. So a client gets the limit from
// Redis and the shares, and never more. A bucket that Redis knows always has a place there, and
// gets no share.
func (z fullZone) most(sort string) int {
	if sort == fresh || sort == known && z.grows() {
		return fullLimit + 2*fullShare
	}
	return fullLimit
}

// TestFloodOfKeysIntoAFullRedis floods one zone of two instances with new keys, until Redis has no
// memory left, and goes on. Meanwhile clients of other zones send requests. Each answer is a
// decision, whatever on_store_error says, and each client gets what it should: while Redis frees
// some of its buffers now and then and has room for a moment, while it never has any room, and
// when it has enough again.
func TestFloodOfKeysIntoAFullRedis(t *testing.T) {
	t.Parallel()
	f := startFullFleet(t)
	const flickering, full = "flickering", "full"
	f.each(func(z fullZone, n int) {
		for _, phase := range []string{flickering, full} {
			for range fullLimit {
				f.ask(f.servers[n%2], z, usedUp, phase, n)
			}
			f.ask(f.servers[n%2], z, known, phase, n)
		}
	})
	f.redis.Configure("maxmemory", strconv.Itoa(f.memory()+256<<10))
	stop := f.flood()
	patient.Until(t, "Redis to be full", func() bool {
		return strings.Contains(f.redis.Admin().Info(context.Background(), "errorstats").Val(), "errorstat_OOM:")
	})
	for _, s := range f.servers {
		patient.Until(t, "each instance to know", func() bool { return storeErrors(t, s.Scrape(f.client), "oom") > 0 })
	}

	f.askAll(flickering, usedUp, known, fresh)
	f.redis.Configure("maxmemory", "1") // from now on, no buffer that Redis frees makes room
	f.askAll(full, usedUp, known, fresh)
	stop()
	f.each(func(z fullZone, n int) {
		for _, sort := range []string{usedUp, known, fresh} {
			if got := f.passed(z, sort, flickering, n); got < z.full(sort) || got > z.most(sort) {
				t.Errorf("%s, %s %d: %d requests passed while Redis was full most of the time, want %d to %d", z.path(), sort, n, got, z.full(sort), z.most(sort))
			}
			if got := f.passed(z, sort, full, n); got != z.full(sort) {
				t.Errorf("%s, %s %d: %d requests passed while Redis was full, want %d", z.path(), sort, n, got, z.full(sort))
			}
		}
	})

	f.t.Logf("at the upstream: %v", f.arrived)

	f.redis.Configure("maxmemory", "0")
	f.askAll(full, known, fresh)
	f.each(func(z fullZone, n int) {
		for _, sort := range []string{known, fresh} {
			if got := f.passed(z, sort, full, n); got != z.most(sort) {
				t.Errorf("%s, %s %d: %d requests passed since Redis has room again, want %d in all", z.path(), sort, n, got, z.most(sort))
			}
		}
	})
	f.checkBreakers()
}

// fullFleet is two instances whose Redis has little memory, and the server behind them.
type fullFleet struct {
	t       *testing.T
	redis   *redistest.Server
	servers []*harness.Server
	client  *http.Client

	mu      sync.Mutex
	arrived map[string]int // that have reached the upstream, by zone and client
}

func startFullFleet(t *testing.T) *fullFleet {
	f := &fullFleet{t: t, client: harness.NewClient(t, ""), arrived: make(map[string]int)}
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.arrived[r.URL.Path+r.Header.Get("X-Client")]++
	}))
	t.Cleanup(upstream.Close)
	f.redis = redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	routes := `
		metrics /metrics
		handle /flood {
			rate_limit {
				zone flooded {
					key {header.X-Client}
					algorithm token_bucket 1/1d
				}
			}
			respond ok
		}`
	for i, z := range fullZones {
		routes += `
		handle ` + z.path() + ` {
			rate_limit {
				zone logins` + strconv.Itoa(i) + ` {
					key {header.X-Client}
					algorithm ` + z.algorithm + ` ` + strconv.Itoa(fullLimit) + `/1d
				}
				on_store_error ` + z.policy + `
			}
			reverse_proxy ` + upstream.Listener.Addr().String() + `
		}`
	}
	config := harness.Caddyfile("rate_limit {\n store redis {\n address "+f.redis.Addr()+"\n timeout 10s\n}\n instances 2\n}", routes)
	f.servers = []*harness.Server{harness.StartCaddy(t, config), harness.StartCaddy(t, config)}
	return f
}

func (f *fullFleet) each(do func(z fullZone, n int)) {
	for _, z := range fullZones {
		for n := range fullClients {
			do(z, n)
		}
	}
}

// clientName names a client of one phase of the test.
func clientName(sort, phase string, n int) string { return fmt.Sprint(sort, " ", phase, " ", n) }

// ask sends a request, which must be decided.
func (f *fullFleet) ask(s *harness.Server, z fullZone, sort, phase string, n int) {
	f.t.Helper()
	a, err := harness.Send(f.client, s.URL(z.path()), "X-Client", clientName(sort, phase, n))
	switch decided := a.Header.Get("RateLimit-Policy") != ""; {
	case err != nil:
		f.t.Error(err)
	case !decided || a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests:
		f.t.Errorf("%s, %s: status %d, decided: %v", z.path(), sort, a.Status, decided)
	}
}

// askAll sends requests of the clients of some sorts to both instances.
func (f *fullFleet) askAll(phase string, sorts ...string) {
	f.t.Helper()
	var clients sync.WaitGroup
	for _, s := range f.servers {
		f.each(func(z fullZone, n int) {
			clients.Go(func() {
				for range fullAsks {
					for _, sort := range sorts {
						f.ask(s, z, sort, phase, n)
					}
				}
			})
		})
	}
	clients.Wait()
}

// passed returns how many requests of a client have reached the upstream.
func (f *fullFleet) passed(z fullZone, sort, phase string, n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.arrived[z.path()+clientName(sort, phase, n)]
}

// flood sends requests with new keys until it is stopped. Each one must be decided.
func (f *fullFleet) flood() (stop func()) {
	var keys atomic.Int64
	done := make(chan struct{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				a, err := harness.Send(f.client, f.servers[i%2].URL("/flood"), "X-Client", fmt.Sprintf("key-%060d", keys.Add(1)))
				if err != nil || a.Status != http.StatusOK || a.Header.Get("RateLimit-Policy") == "" {
					f.t.Errorf("flood: status %d, %v", a.Status, err)
					return
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		close(done)
		group.Wait()
		f.t.Logf("%d new keys", keys.Load())
	})
	f.t.Cleanup(stop)
	return stop
}

// memory returns how much memory Redis uses.
func (f *fullFleet) memory() (bytes int) {
	f.t.Helper()
	text, err := f.redis.Admin().Info(context.Background(), "memory").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, "\nused_memory:")
	if _, err := fmt.Sscan(value, &bytes); err != nil {
		f.t.Fatal(err)
	}
	return bytes
}

// checkBreakers: a full Redis does not count as down.
func (f *fullFleet) checkBreakers() {
	f.t.Helper()
	for _, s := range f.servers {
		text := s.Scrape(f.client)
		if n := storeErrors(f.t, text, "open"); n > 0 {
			f.t.Errorf("the breaker has refused %v requests", n)
		}
		for name := range harness.Nonzero(f.t, text) {
			if strings.HasPrefix(name, "store_breaker_state") && !strings.Contains(name, `state="closed"`) {
				f.t.Errorf("the breaker is not closed: %s", name)
			}
		}
		s.Sound(f.t)
	}
}

// storeErrors returns how many decisions the stores did not give for a reason.
func storeErrors(t *testing.T, metrics, kind string) (n float64) {
	t.Helper()
	for name, value := range harness.Nonzero(t, metrics) {
		if strings.HasPrefix(name, "store_errors_total") && strings.Contains(name, `kind="`+kind+`"`) {
			n += value
		}
	}
	return n
}
