// Package offline sets up a config that does not run: nothing is started, sent, written or logged.
package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Config is a config that is set up, and does not run.
type Config struct {
	App      *caddyhttp.App
	Handlers []*trial.Handler
	Zones    map[string]*zone.Zone // by name; those of one name are alike, but for their matchers
	Stores   []any                 // of each rate limit handler, as it is in JSON; nil for the default
	HTTP     map[string]any        // the app as it is in JSON, without what sends, listens or writes

	ctx caddy.Context
	end func()
}

// alone is held while a config is provisioned or released, because Caddy keeps certificates for the whole process.
var alone sync.Mutex

// Provision sets up the modules of a config. Nobody notices it: see [Config.silence]. The caller must release it.
func Provision(text []byte) (*Config, error) {
	alone.Lock()
	defer alone.Unlock()
	c := &Config{Zones: make(map[string]*zone.Zone)}
	if err := c.load(text); err != nil {
		return nil, err
	}
	module, err := c.ctx.AppIfConfigured("http")
	if err != nil {
		c.end()
		return nil, errors.New("the config has no HTTP servers")
	}
	c.App = module.(*caddyhttp.App)
	if limits, err := c.ctx.AppIfConfigured("rate_limit"); err == nil {
		c.Handlers = limits.(interface{ Handlers() []*trial.Handler }).Handlers()
	}
	for _, h := range c.Handlers {
		for _, z := range h.Zones {
			c.Zones[z.Name] = z
		}
	}
	return c, nil
}

// Release ends what has set up the config.
func (c *Config) Release() {
	alone.Lock()
	defer alone.Unlock()
	c.end()
}

// Handler returns the handler of a module in the routes, or nil.
func (c *Config) Handler(module caddyhttp.MiddlewareHandler) *trial.Handler {
	return trial.Find(c.Handlers, module)
}

// Hosts returns the hosts that the routes of a server name, without those of redirects to https, which Caddy adds. Others
// reports whether there are routes for all hosts.
func (c *Config) Hosts(server string) (hosts []string, others bool) {
	servers, _ := c.HTTP["servers"].(map[string]any)
	of, _ := servers[server].(map[string]any)
	routes, _ := of["routes"].([]any)
	for _, route := range routes {
		route, _ := route.(map[string]any)
		sets, _ := route["match"].([]any)
		others = others || len(sets) == 0
		for _, set := range sets {
			set, _ := set.(map[string]any)
			names, hasHosts := set["host"].([]any)
			others = others || !hasHosts
			for _, name := range names {
				if name, ok := name.(string); ok {
					hosts = append(hosts, name)
				}
			}
		}
	}
	return hosts, others
}

// load loads the modules in a context of their own, because that which [caddy.ProvisionContext] returns cannot be
// canceled.
func (c *Config) load(text []byte) error {
	var parsed struct {
		Apps map[string]any `json:"apps"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return fmt.Errorf("reading the config: %w", err)
	}
	c.HTTP, _ = parsed.Apps["http"].(map[string]any)
	c.silence(parsed.Apps)
	storage, err := os.MkdirTemp("", "caddy-rate-limit-")
	if err != nil {
		return err
	}
	config := &caddy.Config{
		StorageRaw: caddyconfig.JSON(map[string]string{"module": "file_system", "root": storage}, nil),
		Logging:    &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{Level: "ERROR"}}}},
	}
	empty, err := caddy.ProvisionContext(config)
	if err != nil {
		_ = os.RemoveAll(storage)
		return fmt.Errorf("loading the config: %w", err)
	}
	config.AppsRaw = make(caddy.ModuleMap)
	for name, app := range parsed.Apps {
		config.AppsRaw[name] = caddyconfig.JSON(app, nil)
	}
	ctx, cancel := caddy.NewContext(empty)
	c.ctx, c.end = ctx, func() {
		cancel()
		_ = os.RemoveAll(storage)
	}
	for name := range config.AppsRaw {
		if _, err := ctx.App(name); err != nil {
			c.end()
			return fmt.Errorf("loading the config: %w", err)
		}
	}
	return nil
}

// asks has the options of handlers whose modules may ask, listen or write when they are set up. A handler without
// options is never run by [walk], and is left out as a whole.
var asks = map[string][]string{
	"rate_limit":    {"store"},
	"reverse_proxy": {"transport", "health_checks", "dynamic_upstreams", "circuit_breaker", "load_balancing"},
	"acme_server":   nil,
	"tracing":       nil,
}

// asksForCertificate replaces a policy with client certificates, because Caddy then compares the host with that of TLS.
var asksForCertificate = map[string]any{"client_authentication": map[string]any{"mode": "request"}}

// silence takes out of a config what sends, listens or writes when it is set up, and does not decide about requests:
// health checks, certificates and their status, exporters, databases and events. All stores become memory. Modules that
// do not come with Caddy are left as they are.
func (c *Config) silence(apps map[string]any) {
	for _, name := range []string{"tls", "pki", "events"} {
		delete(apps, name)
	}
	delete(c.HTTP, "metrics")
	servers, _ := c.HTTP["servers"].(map[string]any)
	for _, server := range servers {
		server, _ := server.(map[string]any)
		policies, _ := server["tls_connection_policies"].([]any)
		for i, policy := range policies {
			policies[i] = map[string]any{}
			if policy, _ := policy.(map[string]any); policy["client_authentication"] != nil {
				policies[i] = asksForCertificate
			}
		}
	}
	EachHandler(apps, func(name string, h map[string]any) {
		if name == "rate_limit" {
			c.Stores = append(c.Stores, h["store"])
		}
		options, found := asks[name]
		for _, option := range options {
			delete(h, option)
		}
		if found && options == nil {
			clear(h)
			h["handler"] = "subroute" // of no routes
		}
	})
}

// EachHandler calls a function for each handler in a config.
func EachHandler(config any, f func(name string, h map[string]any)) {
	switch value := config.(type) {
	case map[string]any:
		if name, ok := value["handler"].(string); ok {
			f(name, value)
		}
		for _, inner := range value {
			EachHandler(inner, f)
		}
	case []any:
		for _, inner := range value {
			EachHandler(inner, f)
		}
	}
}
