package offline

import (
	"errors"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/engine"
)

// Replay says what a config, which does not run, would have done to the requests of some logs.
func Replay(config []byte, o *replay.Options) (*replay.Result, error) {
	alone, err := Provision(config)
	if err != nil {
		return nil, err
	}
	defer alone.Release()
	c := &engine.Config{JSON: config, App: alone.App}
	for _, h := range alone.Handlers {
		c.Handlers = append(c.Handlers, engine.Handler{Module: h.Module, Zones: h.Zones, Status: h.Status, Final: h.Respond.Final})
	}
	if len(c.Handlers) == 0 {
		return nil, errors.New("the config has no rate_limit handlers")
	}
	return engine.Replay(c, o)
}
