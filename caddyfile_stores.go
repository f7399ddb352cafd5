package caddyratelimit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func parseStore(h *Handler, d *caddyfile.Dispenser) (string, error) {
	if !d.NextArg() {
		return "", d.ArgErr()
	}
	name := d.Val()
	if known := storeNames(); !slices.Contains(known, name) {
		return "", d.Errf("unknown store '%s', must be one of %s", shown(name), strings.Join(known, ", "))
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

// storeNames are the stores that this Caddy has, sorted.
func storeNames() []string {
	var names []string
	for _, module := range caddy.GetModules(storesNamespace) {
		names = append(names, module.ID.Name())
	}
	return names
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. Syntax:
//
//	memory {
//	    max_keys <n>
//	}
func (m *MemoryStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if err := justBlock(d, "store memory"); err != nil {
		return err
	}
	return parseBlock(d, "store memory", "store memory ", map[string]option{
		"max_keys": {parse: integer(d, "max_keys", &m.MaxKeys)},
	})
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. Syntax:
//
//	redis {
//	    mode        standalone|sentinel|cluster
//	    address     <host:port|unix//path> ...
//	    url         <redis://...>
//	    master_name <text>
//	    username    <text>
//	    password    <text>
//	    sentinel_username <text>
//	    sentinel_password <text>
//	    db         <n>
//	    tls {
//	        ca          <file>
//	        cert        <file> <key file>
//	        server_name <name>
//	        insecure_skip_verify
//	    }
//	    key_prefix <text>
//	    timeout    <duration>
//	    pool_size  <n>
//	    deny_cache <duration>|off
//	}
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if err := justBlock(d, "store redis"); err != nil {
		return err
	}
	return parseBlock(d, "store redis", "store redis ", map[string]option{
		"mode":              {parse: filled(d, "mode", &s.Mode)},
		"address":           {parse: s.parseAddress(d)},
		"url":               {parse: secret(d, "url", &s.URL)},
		"username":          {parse: filled(d, "username", &s.Username)},
		"password":          {parse: secret(d, "password", &s.Password)},
		"master_name":       {parse: filled(d, "master_name", &s.MasterName)},
		"sentinel_username": {parse: filled(d, "sentinel_username", &s.SentinelUsername)},
		"sentinel_password": {parse: secret(d, "sentinel_password", &s.SentinelPassword)},
		"db":                {parse: integer(d, "db", &s.DB)},
		"tls":               {parse: func() (string, error) { return "", s.parseTLS(d) }},
		"key_prefix":        {parse: filled(d, "key_prefix", &s.KeyPrefix)},
		"timeout":           {parse: duration(d, "timeout duration", &s.Timeout)},
		"pool_size":         {parse: integer(d, "pool_size", &s.PoolSize)},
		"deny_cache":        {parse: s.parseDenyCache(d)},
	})
}

func (s *RedisStore) parseAddress(d *caddyfile.Dispenser) parser {
	read := texts(d, &s.Address)
	return func() (string, error) {
		given, err := read()
		if err == nil && slices.Contains(s.Address, "") {
			err = d.Err("address is empty")
		}
		return shown(given), err
	}
}

// parseDenyCache reads off as none at all.
func (s *RedisStore) parseDenyCache(d *caddyfile.Dispenser) parser {
	return optional(&s.DenyCache, func(to *caddy.Duration) parser {
		return parsed(d, to, func(text string) (caddy.Duration, error) {
			if text == "off" {
				return 0, nil
			}
			v, err := caddy.ParseDuration(text)
			if err != nil {
				return 0, fmt.Errorf("invalid deny_cache duration '%s': %w; off is none", text, err)
			}
			return caddy.Duration(v), nil
		})
	})
}

func (s *RedisStore) parseTLS(d *caddyfile.Dispenser) error {
	if err := justBlock(d, "tls"); err != nil {
		return err
	}
	s.TLS = new(RedisTLS)
	return parseBlock(d, "tls", "store redis tls ", map[string]option{
		"ca":          {parse: filled(d, "tls ca", &s.TLS.CA)},
		"server_name": {parse: filled(d, "tls server_name", &s.TLS.ServerName)},
		"cert": {parse: func() (string, error) {
			if !d.AllArgs(&s.TLS.Cert, &s.TLS.Key) {
				return "", d.ArgErr()
			}
			if s.TLS.Cert == "" || s.TLS.Key == "" {
				return "", d.Err("tls cert is empty")
			}
			return s.TLS.Cert, nil
		}},
		"insecure_skip_verify": {parse: func() (string, error) {
			if d.NextArg() {
				return "", d.ArgErr()
			}
			s.TLS.InsecureSkipVerify = true
			return "true", nil
		}},
	})
}
