package caddyratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// countedBackend is a memory store of its own whose opening and closing are counted,
// and whose answers can be held back.
type countedBackend struct {
	backend.MemoryStore
	name           string
	opened, closed *atomic.Int32
	hold           chan struct{}
}

func (b *countedBackend) Identity() (string, error) { return "counted:" + b.name, nil }

func (b *countedBackend) Open() (store.Store, error) {
	b.opened.Add(1)
	s, err := memorystore.New(memorystore.Options{})
	return &countedStore{Store: s, backend: b}, err
}

type countedStore struct {
	store.Store
	backend *countedBackend
	done    atomic.Bool
}

func (s *countedStore) Take(ctx context.Context, c []store.Check, d []algorithms.Decision) error {
	if s.backend.hold != nil {
		<-s.backend.hold
	}
	if s.done.Load() {
		return store.ErrClosed
	}
	return s.Store.Take(ctx, c, d)
}

func (s *countedStore) Close() error {
	s.done.Store(true)
	s.backend.closed.Add(1)
	return s.Store.Close()
}

func counted(t *testing.T) *countedBackend {
	return &countedBackend{name: t.Name(), opened: new(atomic.Int32), closed: new(atomic.Int32)}
}

func (b *countedBackend) expect(t *testing.T, opened, closed int32) {
	t.Helper()
	if o, c := b.opened.Load(), b.closed.Load(); o != opened || c != closed {
		t.Fatalf("opened %d times and closed %d times, want %d and %d", o, c, opened, closed)
	}
}

func check(t testing.TB) ([]store.Check, []algorithms.Decision) {
	t.Helper()
	a, err := algorithms.Get("token_bucket")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := store.NewRule("zone", a, algorithms.Limit{Events: 100, Window: 1e9}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)
}

func take(l *pool.Ref, checks []store.Check, decisions []algorithms.Decision) error {
	u, err := l.Begin()
	if err != nil {
		return err
	}
	defer u.End()
	return u.Take(context.Background(), checks, decisions)
}

// TestOneStoreForAllUses: a reload opens nothing anew, and the last user closes.
func TestOneStoreForAllUses(t *testing.T) {
	b := counted(t)
	var leases []*pool.Ref
	for range 3 {
		l, err := pool.Acquire(b)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	b.expect(t, 1, 0)
	for i, l := range leases {
		b.expect(t, 1, 0)
		for range i + 1 { // more than once does no harm
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.expect(t, 1, 1)
}

// TestStoreStaysOpenForCallsUnderWay: a config goes while Redis is being asked.
func TestStoreStaysOpenForCallsUnderWay(t *testing.T) {
	b := counted(t)
	b.hold = make(chan struct{})
	l, err := pool.Acquire(b)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for range 4 {
		checks, decisions := check(t)
		wg.Go(func() {
			errs <- take(l, checks, decisions)
		})
	}
	for l.Store.Users.Load() != 5 {
		// until all four are under way
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	b.expect(t, 1, 0)
	close(b.hold)
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	b.expect(t, 1, 1)
}

// TestRequestOutlivesItsConfig: an old request may get to the handler after its config
// has gone, and is decided all the same.
func TestRequestOutlivesItsConfig(t *testing.T) {
	b := counted(t)
	l, err := pool.Acquire(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	b.expect(t, 1, 1)
	checks, decisions := check(t)
	if err := take(l, checks, decisions); err != nil || !decisions[0].Allowed {
		t.Fatalf("%+v, %v", decisions[0], err)
	}
	b.expect(t, 2, 2)
}

// TestFailedLoadTouchesNothing: mholt's module gives back what it never took, so a
// config that fails empties the counters of the one that runs.
func TestFailedLoadTouchesNothing(t *testing.T) {
	const good = `{"rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`
	running := provision(t, config(t), good)
	for range 3 {
		if status, _ := serve(t, running, "203.0.113.7:1"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	for _, bad := range []string{
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h"}, "zone2": {"max_events": -1, "window": "1h"}}}`,
		`{"rate_limits": {"zone": {"max_events": 3}}}`,
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h", "burst": 7}}}`,
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h", "key": "{http.request.nonsense}"}}}`,
		`{"status": 200, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
		`{"store": {"backend": "memory", "max_keys": 1}, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
		`{"store": {"backend": "redis", "db": -1}, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
	} {
		ctx := config(t)
		if _, err := ctx.LoadModuleByID("http.handlers.rate_limit", []byte(bad)); err == nil {
			t.Fatalf("loads: %s", bad)
		}
		if status, _ := serve(t, running, "203.0.113.7:1"); status != 429 {
			t.Fatalf("counters are gone after the failed load of %s", bad)
		}
	}
}

// TestCountersSurviveAReload, and go with the last config that names their zone.
func TestCountersSurviveAReload(t *testing.T) {
	text := func(events int) string {
		return fmt.Sprintf(`{"rate_limits": {"reloaded": {"max_events": %d, "window": "1h"}}}`, events)
	}
	old := provision(t, config(t), text(2))
	serve(t, old, "203.0.113.7:1")
	serve(t, old, "203.0.113.7:1")
	raised := provision(t, config(t), text(3)) // provisioned before the old one is cleaned up
	if err := old.Cleanup(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 429} {
		if status, _ := serve(t, raised, "203.0.113.7:1"); status != want {
			t.Fatalf("request %d after the limit was raised by one: %d, want %d", i+1, status, want)
		}
	}
	if status, _ := serve(t, old, "203.0.113.7:1"); status != 429 {
		t.Fatalf("an old request, after its config has gone: %d", status)
	}
	if err := raised.Cleanup(); err != nil {
		t.Fatal(err)
	}
	anew := provision(t, config(t), text(2))
	if status, _ := serve(t, anew, "203.0.113.7:1"); status != 200 {
		t.Fatalf("a zone that no config named for a while: %d, want it to start anew", status)
	}
}

func TestZoneDefinedTwice(t *testing.T) {
	zone := func(more string) string {
		return `{"rate_limits": {"twice": {"max_events": 2, "window": "1h"` + more + `}}}`
	}
	ctx := config(t)
	provision(t, ctx, zone(""))
	provision(t, ctx, zone(`, "cost": 2, "match": [{"path": ["/a"]}]`))
	for more, want := range map[string]string{
		`, "key": "{http.vars.client_ip}"`: `zone "twice": defined twice, without a key and with key "{http.vars.client_ip}"; zone names`,
		`, "algorithm": "token_bucket"`:    `zone "twice": defined twice, as sliding_window_log 2/1h and as token_bucket 2/1h; zone names`,
	} {
		_, err := ctx.LoadModuleByID("http.handlers.rate_limit", []byte(zone(more)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	provision(t, config(t), zone(`, "algorithm": "fixed_window"`)) // another config may define it anew
}

// brokenBackend cannot open its store.
type brokenBackend struct{ countedBackend }

func (*brokenBackend) Open() (store.Store, error) { return nil, errors.New("no room") }

func TestBackendThatDoesNotOpen(t *testing.T) {
	if _, err := pool.Acquire(&brokenBackend{*counted(t)}); err == nil || err.Error() != "no room" {
		t.Errorf("got %v", err)
	}
	if _, used := pool.Stores.References("counted:" + t.Name()); used {
		t.Error("it stays in the pool")
	}
}

// panickingBackend fails as go-redis does, for some options.
type panickingBackend struct{ countedBackend }

func (*panickingBackend) Open() (store.Store, error) { panic("makechan: size out of range") }

// TestBackendThatPanics leaves no lock behind that the next config would wait for.
func TestBackendThatPanics(t *testing.T) {
	const want = "opening store memory: panic: makechan: size out of range"
	for range 2 {
		if _, err := pool.Acquire(&panickingBackend{*counted(t)}); err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	}
}

var _ caddy.Module = (*countedBackend)(nil)
