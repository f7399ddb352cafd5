package caddyratelimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	_ "github.com/seed-161337e5/caddyratelimit/internal/operate/admin" // its API
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func init() { caddy.RegisterModule(new(App)) }

// App is what the rate limit handlers of one config have in common. The handlers load it.
type App struct {
	mu    sync.Mutex
	zones map[string]definition

	running running.Config
	cancel  context.CancelFunc // ends what Start has started
	servers map[*caddyhttp.Server]*server

	memory  *memorystore.Store
	maxKeys int    // of the memory store; 0 if no option says it
	revert  func() // gives the memory store its number back, if no other config has begun to run since
}

// definition is what all zones of the same name must agree on, in words: the limit, the store, and the key with its prefixes.
// Matchers and costs may differ: a limit over several sites, a route that costs more.
type definition struct {
	words   [3]string
	storeID string
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "rate_limit",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision implements [caddy.Provisioner].
func (a *App) Provision(ctx caddy.Context) error {
	a.zones, a.servers = make(map[string]definition), make(map[*caddyhttp.Server]*server)
	if err := ctx.GetMetricsRegistry().Register(&a.running); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Handlers returns the handlers of the config, also if it does not run.
func (a *App) Handlers() []*trial.Handler { return a.running.All() }

// define notes the definition of a zone. It returns an error if the name has another one.
func (a *App) define(z *zone.Zone, ref *pool.Ref) error {
	key := fmt.Sprintf("with key %q", z.Key)
	if p := z.Template.Prefixes; p.IPv4 != 0 || p.IPv6 != 0 {
		key += fmt.Sprintf(" (ipv4_prefix %d, ipv6_prefix %d)", cmp.Or(p.IPv4, 32), cmp.Or(p.IPv6, 128))
	}
	d := definition{[3]string{"as " + z.Description, "with " + pool.Describe(ref.Backend), key}, ref.ID}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, taken := a.zones[z.Name]; taken && before != d {
		return fmt.Errorf("defined twice, %s; zone names are global: use another name", before.differs(d))
	}
	a.zones[z.Name] = d
	return nil
}

// differs describes how two definitions differ.
func (d definition) differs(other definition) string {
	for i, words := range d.words {
		if words != other.words[i] {
			return words + " and " + other.words[i]
		}
	}
	return "each time " + d.words[1] + ", but with other options of it"
}

// server is what handlers of the same server share.
type server struct {
	requests *stats.Few // none if the server is not known
	routes   *routes.Routes
}

// server returns what the handlers of the server share that a handler is loaded for.
func (a *App) server(ctx caddy.Context) *server {
	of, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers[of] == nil {
		a.servers[of] = &server{new(stats.Few), routes.Of(of)}
		if of != nil {
			of.RegisterConnState(a.servers[of].requests.Note)
		}
	}
	return a.servers[of]
}

// probe finds out whether the stores answer.
func (a *App) probe(ctx context.Context) {
	refs, zones := make(map[*pool.Store]*pool.Ref), make(map[*pool.Store][]*zone.Zone)
	for _, h := range a.Handlers() {
		refs[h.Store.Store] = h.Store
		zones[h.Store.Store] = append(zones[h.Store.Store], h.Zones...)
	}
	for s, ref := range refs {
		s.Health.Means(consequence(zones[s]))
		go ref.Probe(ctx, logging.Logger())
	}
}

// consequence says what it means for zones that their store does not answer.
func consequence(zones []*zone.Zone) string {
	var decides []string
	for _, z := range zones {
		if one := z.Name + " " + z.OnStoreError; !slices.Contains(decides, one) {
			decides = append(decides, one)
		}
	}
	return "until the rate limit store answers, on_store_error decides: " + cmp.Or(strings.Join(decides, ", "), "there are no zones")
}

// configure notes the config's option of the memory store. A process has one memory store.
func (a *App) configure(chosen store.Backend, opened *pool.Store) error {
	m, ok := chosen.(*backend.MemoryStore)
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory = opened.Store.(*memorystore.Store)
	if a.maxKeys != 0 && m.MaxKeys != 0 && a.maxKeys != m.MaxKeys {
		return fmt.Errorf("store memory: max_keys is %d and %d; there is one memory store in a process: set it once, in the global rate_limit option",
			a.maxKeys, m.MaxKeys)
	}
	a.maxKeys = cmp.Or(m.MaxKeys, a.maxKeys)
	return nil
}

// Start implements [caddy.App]. Only now it is known that the config is valid, so only now it may
// change what the config before still uses.
func (a *App) Start() error {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.probe(ctx)
	if a.memory != nil {
		a.revert = a.memory.Apply(a.maxKeys)
	}
	a.running.Register()
	go a.running.Sample(ctx)
	return nil
}

// Stop implements [caddy.App]. If the config never ran, because another app did not start, the
// memory store gets the number of keys of the running config back.
func (a *App) Stop() error {
	if a.cancel != nil {
		a.cancel()
	}
	a.running.Unregister()
	if a.revert != nil {
		a.revert()
	}
	return nil
}

// Interface guards
var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
