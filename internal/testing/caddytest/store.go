package caddytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store is a store of the test's own, which handlers open through Caddy.
type Store struct {
	name string
	open func() (store.Store, error)
}

// NewStore makes a store that handlers of this test can name in their JSON.
func NewStore(t testing.TB, open func() (store.Store, error)) *Store {
	t.Helper()
	s := &Store{name: fmt.Sprint(t.Name(), " ", stores.next.Add(1)), open: open}
	stores.byName.Store(s.name, s)
	t.Cleanup(func() { stores.byName.Delete(s.name) })
	return s
}

// Option is the member of a handler's JSON that names the store, with a comma behind it.
func (s *Store) Option() string {
	return fmt.Sprintf(`"store": {"backend": "caddytest.store", "name": %q}, `, s.name)
}

// stores are those of the tests that run.
var stores struct {
	next   atomic.Int64
	byName sync.Map
}

// backend is the module. Errors list the stores that there are; this one is not among them,
// because its name has a dot.
type backend struct {
	Name string `json:"name"`
}

func init() { caddy.RegisterModule(new(backend)) }

// CaddyModule implements [caddy.Module].
func (*backend) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.rate_limit.stores.caddytest.store", New: func() caddy.Module { return new(backend) }}
}

// String is what errors call the store.
func (*backend) String() string { return "store test" }

// Identity implements [store.Backend].
func (b *backend) Identity() (string, error) { return "caddytest:" + b.Name, nil }

// Open implements [store.Backend].
func (b *backend) Open() (store.Store, error) {
	known, ok := stores.byName.Load(b.Name)
	if !ok {
		return nil, fmt.Errorf("no store %q", b.Name)
	}
	return known.(*Store).open()
}

// ErrNoAnswer is for stores that do not answer.
var ErrNoAnswer = errors.New("no answer")

// Failing makes a store that answers each call with an error.
func Failing(t testing.TB, err error) *Store {
	return NewStore(t, func() (store.Store, error) { return failing{err}, nil })
}

type failing struct{ err error }

func (f failing) Take(context.Context, []store.Check, []algorithms.Decision) error { return f.err }
func (f failing) Reset(context.Context, *store.Rule, string) error                 { return f.err }
func (failing) Adjust(...store.Adjustment)                                         {}
func (failing) Close() error                                                       { return nil }

// Kept is a store in memory that the test can also ask by itself, under the rules of the handlers' zones.
type Kept struct {
	*Store
	rules  sync.Map // by zone
	opened atomic.Pointer[memorystore.Store]
	closed atomic.Bool
}

// KeepMemory makes a memory store of the test's own.
func KeepMemory(t testing.TB, options memorystore.Options) *Kept {
	t.Helper()
	k := new(Kept)
	k.Store = NewStore(t, func() (store.Store, error) {
		s, err := memorystore.New(options)
		if err != nil {
			return nil, err
		}
		k.opened.Store(s)
		k.closed.Store(false)
		return keptStore{s, k}, nil
	})
	return k
}

// Closed reports whether the handlers have closed the store.
func (k *Kept) Closed() bool { return k.closed.Load() }

// Rule returns the rule under which a handler has last asked about a zone. A request must have met the zone.
func (k *Kept) Rule(zone string) *store.Rule {
	rule, _ := k.rules.Load(zone)
	return rule.(*store.Rule)
}

// Peek returns what is left of a zone for a key, which is asked about alone.
func (k *Kept) Peek(t testing.TB, zone, key string) algorithms.Decision {
	t.Helper()
	var decisions [1]algorithms.Decision
	if err := k.Opened().Take(t.Context(), []store.Check{{Rule: k.Rule(zone), Key: key}}, decisions[:]); err != nil {
		t.Fatal(err)
	}
	return decisions[0]
}

// Used is how much of a zone's quota a key has used.
func (k *Kept) Used(t testing.TB, zone, key string) int64 {
	t.Helper()
	d := k.Peek(t, zone, key)
	return d.Quota - d.Remaining
}

// Opened returns the store that handlers have opened.
func (k *Kept) Opened() *memorystore.Store { return k.opened.Load() }

// keptStore is what handlers open. It has all abilities of the store below.
type keptStore struct {
	*memorystore.Store
	kept *Kept
}

// Take implements [store.Store].
func (s keptStore) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	for i := range checks {
		s.kept.rules.Store(checks[i].Rule.Zone(), checks[i].Rule)
	}
	return s.Store.Take(ctx, checks, decisions)
}

// Close implements [store.Store].
func (s keptStore) Close() error {
	s.kept.closed.Store(true)
	return s.Store.Close()
}
