package admin

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2"
)

// provisionAlone sets up the modules of a config, as `caddy validate` does, without anything that
// others would notice: no store is asked, and no log, admin endpoint or storage is touched.
func provisionAlone(config []byte) (caddy.Context, error) {
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return caddy.Context{}, fmt.Errorf("reading the config: %w", err)
	}
	useMemory(parsed)
	storage, err := os.MkdirTemp("", "caddy-rate-limit-")
	if err != nil {
		return caddy.Context{}, err
	}
	defer os.RemoveAll(storage)
	parsed["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	parsed["storage"] = map[string]any{"module": "file_system", "root": storage}
	parsed["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{"level": "ERROR"}}}
	text, err := json.Marshal(parsed)
	if err != nil {
		return caddy.Context{}, err
	}
	var c caddy.Config
	if err := json.Unmarshal(text, &c); err != nil {
		return caddy.Context{}, fmt.Errorf("reading the config: %w", err)
	}
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		return ctx, fmt.Errorf("loading the config: %w", err)
	}
	return ctx, nil
}

// useMemory makes all rate limit handlers in a config count in memory.
func useMemory(config any) { eachHandler(config, func(h map[string]any) { delete(h, "store") }) }

// eachHandler calls a function for each rate limit handler in a config.
func eachHandler(config any, f func(map[string]any)) {
	switch value := config.(type) {
	case map[string]any:
		if value["handler"] == "rate_limit" {
			f(value)
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
