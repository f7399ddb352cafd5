package admin

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/engine"
)

// Replay says what a config, which does not run, would have done to the requests of some logs. It is
// for the command line, which asks no running Caddy for this.
func (AdminAPI) Replay(config []byte, o *replay.Options) (*replay.Result, error) {
	app, handlers, err := provisionHandlers(config)
	if err != nil {
		return nil, err
	}
	defer handlers.release()
	c := &engine.Config{JSON: config, App: app}
	for _, h := range handlers.All() {
		c.Handlers = append(c.Handlers, engine.Handler{Module: h.Module, Zones: h.Zones, Status: h.Status, Final: h.Final})
	}
	if len(c.Handlers) == 0 {
		return nil, errors.New("the config has no rate_limit handlers")
	}
	return engine.Replay(c, o)
}

// release releases what the handlers of a config that does not run have acquired.
func (c *Config) release() {
	for _, h := range c.All() {
		if module, ok := h.Module.(caddy.CleanerUpper); ok {
			_ = module.Cleanup()
		}
	}
}

// provisionHandlers sets up a config that does not run, and returns its HTTP app and its handlers. The
// caller must release these.
func provisionHandlers(config []byte) (*caddyhttp.App, *Config, error) {
	ctx, err := provisionAlone(config)
	if err != nil {
		return nil, nil, err
	}
	module, err := ctx.AppIfConfigured("http")
	if err != nil {
		return nil, nil, errors.New("the config has no HTTP servers")
	}
	app, err := ctx.AppIfConfigured("rate_limit")
	if err != nil {
		return module.(*caddyhttp.App), new(Config), nil
	}
	holder, ok := app.(interface{ Handlers() *Config })
	if !ok {
		return nil, nil, fmt.Errorf("the app rate_limit is %T", app)
	}
	return module.(*caddyhttp.App), holder.Handlers(), nil
}
