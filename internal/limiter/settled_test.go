package limiter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// backendOf opens a store of a test.
type backendOf struct {
	id   string
	open func() (store.Store, error)
}

func (b backendOf) Identity() (string, error)  { return b.id, nil }
func (b backendOf) Open() (store.Store, error) { return b.open() }

// charging is an instance with a zone whose requests cost what their response says, and maybe others.
type charging struct {
	*limiter.Limiter
	ref   *pool.Ref
	zones []*zone.Zone
}

// limitOf returns a limit.
func limitOf(algorithm string, events int64, window time.Duration, change ...func(*limit.Limit)) limit.Limit {
	l := limit.Limit{Algorithm: algorithm, MaxEvents: &limit.Amount{Number: events}, Window: limit.Window{Duration: caddy.Duration(window)}}
	for _, c := range change {
		c(&l)
	}
	return l
}

// newCharging makes an instance. The first zone reads costs of responses.
func newCharging(t *testing.T, b store.Backend, specs ...zone.Spec) *charging {
	t.Helper()
	ref, err := pool.Acquire(b)
	if err != nil {
		t.Fatal(err)
	}
	m := &charging{ref: ref}
	for i, s := range specs {
		s.Index, s.Cost, s.MissingKey = i, limit.Amount{Number: 1}, zone.MissingShare
		if s.Template, err = key.New("{http.request.header.X-Key}", 0, 0); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.Name, s.CostResponse = "late", &cost.Response{JSON: []string{"spent"}}
			if err := s.CostResponse.Compile(); err != nil {
				t.Fatal(err)
			}
		}
		z, err := zone.New(s, new(stats.Counters))
		if err != nil {
			t.Fatal(err)
		}
		m.zones = append(m.zones, z)
	}
	m.Limiter = limiter.New(limiter.Config{Zones: m.zones, Store: ref, Logger: zap.NewNop()})
	return m
}

func (m *charging) close(t *testing.T) {
	if err := m.ref.Release(); err != nil {
		t.Error(err)
	}
}

// serve sends a request whose upstream takes some milliseconds, and says that it has cost so many. It reports whether the request has passed.
func (m *charging) serve(takes time.Duration) bool {
	r := httptest.NewRequest(http.MethodGet, "/page", nil)
	r.Header.Set("X-Key", "k")
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
	v := m.Decide(r)
	passes := v.Passes()
	c := v.Release()
	if passes {
		_ = c.Serve(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			time.Sleep(takes)
			_, err := fmt.Fprintf(w, `{"spent":%d}`, takes.Milliseconds())
			return err
		}), noErrorRoutes{})
	}
	return passes
}

// charged returns what the requests of an instance have cost, by what their responses have said.
func (m *charging) charged() int64 {
	_, sum := m.zones[0].Stats.Costs.Read()
	return int64(sum)
}

// counted returns what a store has counted in the zone.
func (m *charging) counted(t *testing.T, s store.Store) int64 {
	t.Helper()
	var d [1]algorithms.Decision
	patient.Until(t, "an answer", func() bool {
		return s.Take(context.Background(), []store.Check{{Rule: m.zones[0].OwnPolicies.Fixed.Rule, Key: "k", KeyRules: m.zones[0].KeyRules}}, d[:]) == nil
	})
	return d[0].Quota - d[0].Remaining
}

// cells are options of the zone, and zones beside it.
var cells = []struct {
	name   string
	spec   zone.Spec
	beside []zone.Spec
	atOnce int // requests
	passes int // of six, which take 20 ms
}{
	{"alone", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour)}, nil, 3, 6},
	{"a log", zone.Spec{Limit: limitOf("sliding_window_log", 1_000_000, 1000*time.Hour)}, nil, 3, 6},
	{"a counter", zone.Spec{Limit: limitOf("sliding_window_counter", 1_000_000, 1000*time.Hour)}, nil, 3, 6},
	{"a bucket", zone.Spec{Limit: limitOf("token_bucket", 12, time.Hour, func(l *limit.Limit) { l.Burst = limit.Amount{Number: 1_000_000} })}, nil, 3, 6},
	{"a dry run", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour), DryRun: true}, nil, 3, 6},
	{"a dry run beside a limit", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour), DryRun: true}, []zone.Spec{{Name: "four", Limit: limitOf("fixed_window", 4, 1000*time.Hour)}}, 3, 4},
	{"beside a limit", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour)}, []zone.Spec{{Name: "four", Limit: limitOf("fixed_window", 4, 1000*time.Hour)}}, 3, 4},
	{"overrides", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour), KeyRules: &store.KeyRules{Overrides: true}}, nil, 3, 6},
	{"a wait for slots", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour)}, []zone.Spec{{
		Name: "slots", Limit: limitOf("concurrency", 1, 0, func(l *limit.Limit) { l.MaxWait = caddy.Duration(time.Minute) }),
	}}, 6, 6},
	{"a wait in a queue", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour)}, []zone.Spec{{
		Name: "queue", Limit: limitOf("leaky_bucket", 25, time.Second, func(l *limit.Limit) { l.Mode, l.Burst = algorithms.ModeQueue, limit.Amount{Number: 100} }),
	}}, 6, 6},
	{"lent", zone.Spec{Limit: limitOf("fixed_window", 1_000_000, 1000*time.Hour), Lend: 20 * time.Millisecond}, nil, 3, 6},
	{"lent, beside a wait for slots", zone.Spec{Limit: limitOf("token_bucket", 12, time.Hour, func(l *limit.Limit) { l.Burst = limit.Amount{Number: 1_000_000} }), Lend: 20 * time.Millisecond}, []zone.Spec{{
		Name: "slots", Limit: limitOf("concurrency", 1, 0, func(l *limit.Limit) { l.MaxWait = caddy.Duration(time.Minute) }),
	}}, 6, 6},
}

// sends sends six requests to instances in turn, some at once. It returns how many have passed.
func sends(fleet []*charging, atOnce int, takes time.Duration) (passed int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	turn := make(chan struct{}, atOnce)
	for i := range 6 {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			passes := fleet[i%len(fleet)].serve(takes)
			mu.Lock()
			defer mu.Unlock()
			if passes {
				passed++
			}
		})
	}
	all.Wait()
	return passed
}

// TestSettled: whatever other zones there are, a zone that reads costs of responses has counted at last what they have said, and not
// what was booked.
func TestSettled(t *testing.T) {
	for _, c := range cells {
		synctest.Test(t, func(t *testing.T) {
			s, err := memorystore.New(memorystore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m := newCharging(t, backendOf{"settled " + c.name, func() (store.Store, error) { return s, nil }}, append([]zone.Spec{c.spec}, c.beside...)...)
			defer m.close(t)
			passed, want := sends([]*charging{m}, c.atOnce, 20*time.Millisecond), int64(20*c.passes)
			synctest.Wait()
			if got := m.counted(t, s); passed != c.passes || got != want || m.charged() != want {
				t.Errorf("%s: %d have passed, %d are counted, they cost %d, want %d and %d", c.name, passed, got, m.charged(), c.passes, want)
			}
		})
	}
}

// TestSettledInQueues: a request that waits because earlier ones have taken longer than was booked pays for its own time and not for the
// wait, in a queue and with max_wait.
func TestSettledInQueues(t *testing.T) {
	for name, c := range map[string]struct {
		limit limit.Limit
		waits time.Duration // the second request
	}{
		"a queue":  {limitOf("leaky_bucket", 1, time.Minute, func(l *limit.Limit) { l.Mode, l.Burst = algorithms.ModeQueue, limit.Amount{Number: 1000} }), 50 * time.Minute},
		"max_wait": {limitOf("fixed_window", 50, time.Hour, func(l *limit.Limit) { l.Align, l.MaxWait = "first_request", caddy.Duration(time.Hour) }), time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := memorystore.New(memorystore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m := newCharging(t, backendOf{"settled in " + name, func() (store.Store, error) { return s, nil }}, zone.Spec{Limit: c.limit})
			defer m.close(t)
			began := time.Now()
			for _, takes := range []time.Duration{50, 50} {
				if !m.serve(takes * time.Millisecond) {
					t.Fatalf("%s: a request is refused", name)
				}
				synctest.Wait()
				if got := m.counted(t, s); got != int64(takes) {
					t.Errorf("%s: %d are counted, want %d", name, got, takes)
				}
			}
			if waited := time.Since(began) - 100*time.Millisecond; waited < c.waits-time.Second || waited > c.waits+time.Second || m.charged() != 100 {
				t.Errorf("%s: waited %v, want %v; they cost %d, want 100", name, waited, c.waits, m.charged())
			}
		})
	}
}
