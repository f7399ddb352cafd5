package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// alone is held while a config is provisioned or released, because Caddy keeps certificates for the whole process.
var alone sync.Mutex

// provisionHandlers sets up a config that does not run, and returns its HTTP app and its handlers. Nobody notices
// it: see [silence]. The caller must release what it has set up.
func provisionHandlers(config []byte) (app *caddyhttp.App, handlers *Config, release func(), err error) {
	ctx, release, err := provisionAlone(config)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	module, err := ctx.AppIfConfigured("http")
	if err != nil {
		return nil, nil, nil, errors.New("the config has no HTTP servers")
	}
	limits, err := ctx.AppIfConfigured("rate_limit")
	if err != nil {
		return module.(*caddyhttp.App), new(Config), release, nil
	}
	holder, ok := limits.(interface{ Handlers() *Config })
	if !ok {
		return nil, nil, nil, fmt.Errorf("the app rate_limit is %T", limits)
	}
	return module.(*caddyhttp.App), holder.Handlers(), release, nil
}

// provisionAlone sets up the modules of a config. They are loaded in a context of their own, because that which
// [caddy.ProvisionContext] returns cannot be canceled.
func provisionAlone(config []byte) (ctx caddy.Context, release func(), err error) {
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return ctx, nil, fmt.Errorf("reading the config: %w", err)
	}
	silence(parsed)
	text, err := json.Marshal(parsed["apps"])
	if err != nil {
		return ctx, nil, err
	}
	var apps caddy.ModuleMap
	if err := json.Unmarshal(text, &apps); err != nil {
		return ctx, nil, fmt.Errorf("reading the config: %w", err)
	}
	storage, err := os.MkdirTemp("", "caddy-rate-limit-")
	if err != nil {
		return ctx, nil, err
	}
	alone.Lock()
	defer alone.Unlock()
	c := &caddy.Config{
		StorageRaw: caddyconfig.JSON(map[string]string{"module": "file_system", "root": storage}, nil),
		Logging:    &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{Level: "ERROR"}}}},
	}
	empty, err := caddy.ProvisionContext(c)
	if err != nil {
		_ = os.RemoveAll(storage)
		return ctx, nil, fmt.Errorf("loading the config: %w", err)
	}
	c.AppsRaw = apps
	ctx, cancel := caddy.NewContext(empty)
	end := func() {
		cancel()
		_ = os.RemoveAll(storage)
	}
	for name := range apps {
		if _, err := ctx.App(name); err != nil {
			end()
			return ctx, nil, fmt.Errorf("loading the config: %w", err)
		}
	}
	return ctx, func() { alone.Lock(); defer alone.Unlock(); end() }, nil
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
func silence(config map[string]any) {
	apps, _ := config["apps"].(map[string]any)
	for _, name := range []string{"tls", "pki", "events"} {
		delete(apps, name)
	}
	web, _ := apps["http"].(map[string]any)
	delete(web, "metrics")
	servers, _ := web["servers"].(map[string]any)
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
	eachHandler(config, func(name string, h map[string]any) {
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

// eachHandler calls a function for each handler in a config.
func eachHandler(config any, f func(name string, h map[string]any)) {
	switch value := config.(type) {
	case map[string]any:
		if name, ok := value["handler"].(string); ok {
			f(name, value)
		}
		for _, inner := range value {
			eachHandler(inner, f)
		}
	case []any:
		for _, inner := range value {
			eachHandler(inner, f)
		}
	}
}

// eachStore calls a function with the store of each rate limit handler in a config; nil for none.
func eachStore(config []byte, f func(store any)) {
	var parsed any
	_ = json.Unmarshal(config, &parsed)
	eachHandler(parsed, func(name string, h map[string]any) {
		if name == "rate_limit" {
			f(h["store"])
		}
	})
}
