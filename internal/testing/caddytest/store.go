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
