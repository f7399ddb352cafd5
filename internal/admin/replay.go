package admin

import (
	"errors"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/engine"
)

// Replay says what a config, which does not run, would have done to the requests of some logs. It is
// for the command line, which asks no running Caddy for this.
func (AdminAPI) Replay(config []byte, o *replay.Options) (*replay.Result, error) {
	app, handlers, release, err := provisionHandlers(config)
	if err != nil {
		return nil, err
	}
	defer release()
	c := &engine.Config{JSON: config, App: app}
	for _, h := range handlers.All() {
		c.Handlers = append(c.Handlers, engine.Handler{Module: h.Module, Zones: h.Zones, Status: h.Status, Final: h.Final})
	}
	if len(c.Handlers) == 0 {
		return nil, errors.New("the config has no rate_limit handlers")
	}
	return engine.Replay(c, o)
}
