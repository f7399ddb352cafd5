package pool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// countedBackend is a memory store of its own. It counts how often it is opened and closed, and can
// delay its answers.
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
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 100, Window: 1e9})
	return []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)
}

func take(ref *Ref, checks []store.Check, decisions []algorithms.Decision) error {
	session, err := ref.Begin()
	if err != nil {
		return err
	}
	defer session.End()
	return session.Take(context.Background(), checks, decisions)
}

// TestOneStoreForAllUses: a store is opened for the first reference and closed with the last.
func TestOneStoreForAllUses(t *testing.T) {
	b := counted(t)
	var refs []*Ref
	for range 3 {
		ref, err := Acquire(b)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	b.expect(t, 1, 0)
	for i, ref := range refs {
		b.expect(t, 1, 0)
		for range i + 1 { // a second release does nothing
			if err := ref.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.expect(t, 1, 1)
}

// TestStoreStaysOpenForCallsUnderWay: a store whose config has ended is closed after its last call.
func TestStoreStaysOpenForCallsUnderWay(t *testing.T) {
	b := counted(t)
	b.hold = make(chan struct{})
	ref, err := Acquire(b)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for range 4 {
		checks, decisions := check(t)
		wg.Go(func() {
			errs <- take(ref, checks, decisions)
		})
	}
	patient.UntilEqual(t, "uses of the store, with four calls in progress", ref.Store.users.Load, 5)
	if err := ref.Release(); err != nil {
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

// TestRequestOutlivesItsConfig: a request may reach the handler after its config has ended, and is
// decided all the same.
func TestRequestOutlivesItsConfig(t *testing.T) {
	b := counted(t)
	ref, err := Acquire(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Release(); err != nil {
		t.Fatal(err)
	}
	b.expect(t, 1, 1)
	checks, decisions := check(t)
	if err := take(ref, checks, decisions); err != nil || !decisions[0].Allowed {
		t.Fatalf("%+v, %v", decisions[0], err)
	}
	b.expect(t, 2, 2)
}

// brokenBackend cannot open its store.
type brokenBackend struct{ countedBackend }

func (*brokenBackend) Open() (store.Store, error) { return nil, errors.New("no room") }

func TestBackendThatDoesNotOpen(t *testing.T) {
	if _, err := Acquire(&brokenBackend{*counted(t)}); err == nil || err.Error() != "no room" {
		t.Errorf("got %v", err)
	}
	if _, used := stores.References("counted:" + t.Name()); used {
		t.Error("the store is still in the pool")
	}
}

// panickingBackend panics, as go-redis does for some options.
type panickingBackend struct{ countedBackend }

func (*panickingBackend) Open() (store.Store, error) { panic("makechan: size out of range") }

// TestBackendThatPanics: a panic leaves no lock behind that the next config would wait for.
func TestBackendThatPanics(t *testing.T) {
	const want = "opening store memory: panic: makechan: size out of range"
	for range 2 {
		if _, err := Acquire(&panickingBackend{*counted(t)}); err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	}
}
