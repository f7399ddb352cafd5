package backend

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// MemoryStore keeps counters in the memory of this process, so limits hold for one instance.
// Counters survive config reloads, and are dropped when no config has their zone. A process
// has one memory store.
type MemoryStore struct {
	// How many keys are kept, for all zones together, at least 1024. When the store is full, new keys share buckets: no limit
	// is exceeded, but new clients may be refused because of each other. A key takes about 100 bytes; with
	// `sliding_window_log`, 8 more for each event. Default: 1000000.
	MaxKeys int `json:"max_keys,omitempty" range:"1024.." unit:"keys" default:"=1000000"`
}

// CaddyModule returns the Caddy module information.
func (MemoryStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.rate_limit.stores.memory",
		New: func() caddy.Module { return new(MemoryStore) },
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *MemoryStore) UnmarshalJSON(text []byte) error { return option.JSON(text, m) }

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler].
func (m *MemoryStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	return option.Block(d, "store memory", m, nil)
}

// Identity implements [store.Backend].
func (*MemoryStore) Identity() (string, error) { return "memory", nil }

// Open implements [store.Backend].
func (m *MemoryStore) Open() (store.Store, error) {
	return memorystore.New(memorystore.Options{MaxKeys: m.MaxKeys, Logger: logging.Logger})
}

// Interface guard
var _ store.Backend = (*MemoryStore)(nil)
