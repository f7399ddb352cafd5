package caddyratelimit

import (
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App is what the rate limit handlers of one config have in common. It takes no
// options: the handlers load it.
type App struct {
	mu    sync.Mutex
	zones map[string]definition

	memory        *memorystore.Store
	maxKeys       int
	sweepInterval time.Duration
}

// definition is what all uses of a zone's name must agree on. Matchers and costs may
// differ: a limit over several sites, a route that costs more.
type definition struct {
	key                    string
	ipv4Prefix, ipv6Prefix int
	limit                  string
	store                  string
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "rate_limit",
		New: func() caddy.Module { return new(App) },
	}
}

// appOf finds the config's app.
func appOf(ctx caddy.Context) (*App, error) {
	module, err := ctx.App("rate_limit")
	if err != nil {
		return nil, err
	}
	return module.(*App), nil
}

// Provision implements [caddy.Provisioner].
func (a *App) Provision(caddy.Context) error {
	a.zones = make(map[string]definition)
	return nil
}

// define notes what a zone is, and fails if its name is taken for something else.
func (a *App) define(z *Zone, store string) error {
	d := definition{
		key:        z.Key,
		ipv4Prefix: z.IPv4Prefix,
		ipv6Prefix: z.IPv6Prefix,
		limit:      fmt.Sprintf("%s %d/%v burst %d", z.rule.Algorithm().Name(), z.rule.Limit().Events, z.rule.Limit().Window, z.rule.Limit().Burst),
		store:      store,
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before, ok := a.zones[z.name]
	switch {
	case !ok:
		a.zones[z.name] = d
	case before.limit != d.limit:
		return fmt.Errorf("defined twice, as %s and as %s; zone names are global: use another name", before.limit, d.limit)
	case before.store != d.store:
		return fmt.Errorf("defined twice, with two stores; zone names are global: use another name")
	case before != d:
		return fmt.Errorf("defined twice, with key %q and with key %q; zone names are global: use another name",
			before.keyText(), d.keyText())
	}
	return nil
}

func (d definition) keyText() string {
	return fmt.Sprintf("%s (ipv4_prefix %d, ipv6_prefix %d)", d.key, d.ipv4Prefix, d.ipv6Prefix)
}

// configure notes what the config says of the memory store, of which there is one in
// a process.
func (a *App) configure(backend Backend, opened *shared, sweepInterval caddy.Duration) error {
	m, ok := backend.(*MemoryStore)
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory = opened.Store.(*memorystore.Store)
	if m.MaxKeys != 0 {
		if a.maxKeys != 0 && a.maxKeys != m.MaxKeys {
			return fmt.Errorf("store memory: max_keys is %d and %d; there is one memory store in a process", a.maxKeys, m.MaxKeys)
		}
		a.maxKeys = m.MaxKeys
	}
	if d := time.Duration(sweepInterval); d != 0 && (a.sweepInterval == 0 || d < a.sweepInterval) {
		a.sweepInterval = d
	}
	return nil
}

// Start implements [caddy.App]. Only now is the config known to be good, and may change
// what the one before it still uses.
func (a *App) Start() error {
	if a.memory != nil {
		a.memory.SetMaxKeys(a.maxKeys)
		a.memory.SetSweepInterval(a.sweepInterval)
	}
	return nil
}

// Stop implements [caddy.App].
func (*App) Stop() error { return nil }

// Interface guards
var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
