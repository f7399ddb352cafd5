package caddyratelimit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

func parseStore(h *Handler, d *caddyfile.Dispenser) (string, error) {
	if !d.NextArg() {
		return "", d.ArgErr()
	}
	name := d.Val()
	if known := storeNames(); !slices.Contains(known, name) {
		return "", d.Errf("unknown store '%s', must be one of %s", option.Shown(name), strings.Join(known, ", "))
	}
	module, err := caddyfile.UnmarshalModule(d, storesNamespace+"."+name)
	if err != nil {
		return "", err
	}
	var warnings []caddyconfig.Warning
	h.StoreRaw = json.RawMessage(caddyconfig.JSONModuleObject(module, "backend", name, &warnings))
	if len(warnings) > 0 { // without it the handler would count in memory
		return "", d.Errf("store %s: %s", name, warnings[0].Message)
	}
	return name, nil
}

const storesNamespace = "http.rate_limit.stores"

// storeNames are the stores that this Caddy has, sorted.
func storeNames() []string {
	var names []string
	for _, module := range caddy.GetModules(storesNamespace) {
		names = append(names, module.ID.Name())
	}
	return names
}
