package simplestore

import (
	"fmt"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/store"
)

func init() { caddy.RegisterModule(new(Backend)) }

// Backend is the Caddy module: the options of the store, and how to open it. Its name is the
// last part of its ID, so a config says `store simple`.
type Backend struct {
	// How many keys are kept. Beyond it, new keys are counted by the rate limiter itself.
	// Default: 1000000.
	MaxKeys int `json:"max_keys,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Backend) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.rate_limit.stores.simple", New: func() caddy.Module { return new(Backend) }}
}

// Provision implements [caddy.Provisioner].
func (b *Backend) Provision(caddy.Context) error {
	if b.MaxKeys == 0 {
		b.MaxKeys = 1_000_000
	}
	if b.MaxKeys < 1 {
		return fmt.Errorf("max_keys must be at least 1, got %d", b.MaxKeys)
	}
	return nil
}

// Identity implements [store.Backend]. Handlers with the same identity share one store, also
// across a reload.
func (b *Backend) Identity() (string, error) { return fmt.Sprint("simple ", b.MaxKeys), nil }

// Open implements [store.Backend].
func (b *Backend) Open() (store.Store, error) { return New(b.MaxKeys, nil), nil }

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. Syntax:
//
//	simple {
//	    max_keys <n>
//	}
func (b *Backend) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	for d.NextBlock(0) {
		if d.Val() != "max_keys" {
			return d.Errf("unknown option %q, must be max_keys", d.Val())
		}
		var value string
		if !d.Args(&value) || d.NextArg() {
			return d.ArgErr()
		}
		var err error
		if b.MaxKeys, err = strconv.Atoi(value); err != nil {
			return d.Errf("max_keys must be a whole number, got %q", value)
		}
	}
	return nil
}

// Interface guards
var (
	_ store.Backend         = (*Backend)(nil)
	_ caddy.Provisioner     = (*Backend)(nil)
	_ caddyfile.Unmarshaler = (*Backend)(nil)
)
