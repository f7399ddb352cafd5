package pool

import (
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Local is the memory store that decides while a remote store does not answer or is full. There
// is one for each remote store, for as long as a handler of any config may need it.
type Local struct {
	StandsFor string // identity of the store
}

// String returns the store's name in errors.
func (*Local) String() string { return "store memory" }

// Identity implements [store.Backend].
func (b *Local) Identity() (string, error) { return "local:" + b.StandsFor, nil }

// Open implements [store.Backend].
func (*Local) Open() (store.Store, error) {
	return memorystore.New(memorystore.Options{Logger: logging.Logger})
}
