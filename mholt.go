package caddyratelimit

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// Distributed is how github.com/mholt/caddy-ratelimit synchronizes instances. It has no effect here:
// instances enforce one limit if they share a store such as `redis`.
type Distributed struct {
	// Has no effect.
	ReadInterval caddy.Duration `json:"read_interval,omitempty"`

	// Has no effect.
	WriteInterval caddy.Duration `json:"write_interval,omitempty"`

	// Has no effect.
	PurgeAge caddy.Duration `json:"purge_age,omitempty"`
}

// parseDistributed reads the block, if there is one.
func parseDistributed(d *caddyfile.Dispenser, to **Distributed) option.Parser {
	return func() (string, error) {
		*to = new(Distributed)
		if d.NextArg() {
			return "", d.ArgErr()
		}
		return "", option.Block(d, "distributed", "", map[string]option.Option{
			"read_interval":  {Label: "read interval", Parse: option.Duration(d, "read interval", &(*to).ReadInterval)},
			"write_interval": {Label: "write interval", Parse: option.Duration(d, "write interval", &(*to).WriteInterval)},
			"purge_age":      {Label: "purge age", Parse: option.Duration(d, "purge age", &(*to).PurgeAge)},
		})
	}
}

// parseStorage reads the name of the storage module. It keeps none of the options, because they
// may be secret, and the module may be missing in the binary, because nothing uses it.
func parseStorage(d *caddyfile.Dispenser, to *json.RawMessage) option.Parser {
	return func() (string, error) {
		segment := d.NextSegment()
		if len(segment) < 2 || segment[1].Text == "{" {
			return "", d.ArgErr()
		}
		name, err := json.Marshal(map[string]string{"module": segment[1].Text})
		*to = name
		return option.Shown(segment[1].Text), err
	}
}

// warnAboutDistributed warns if a config is meant for a fleet, but its store is not shared.
func (h *Handler) warnAboutDistributed() {
	if h.Distributed != nil && !h.store.Store.Remote {
		h.logger.Warn("distributed has no effect: this instance counts on its own, and a fleet admits as many times the limit as it has instances; "+shareStore.With().String(),
			zap.String("store", pool.Describe(h.store.Backend)))
	}
}
