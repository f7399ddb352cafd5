package backend

import (
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

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
//	    require    [true|false]
//	}
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if err := option.OnlyBlock(d, "store redis"); err != nil {
		return err
	}
	return option.Block(d, "store redis", "store redis ", map[string]option.Option{
		"mode":              {Parse: option.NonEmpty(d, "mode", &s.Mode)},
		"address":           {Parse: s.parseAddress(d)},
		"url":               {Parse: option.Secret(d, "url", &s.URL)},
		"username":          {Parse: option.NonEmpty(d, "username", &s.Username)},
		"password":          {Parse: option.Secret(d, "password", &s.Password)},
		"master_name":       {Parse: option.NonEmpty(d, "master_name", &s.MasterName)},
		"sentinel_username": {Parse: option.NonEmpty(d, "sentinel_username", &s.SentinelUsername)},
		"sentinel_password": {Parse: option.Secret(d, "sentinel_password", &s.SentinelPassword)},
		"db":                {Parse: option.Integer(d, "db", &s.DB)},
		"tls":               {Parse: func() (string, error) { return "", s.parseTLS(d) }},
		"key_prefix":        {Parse: option.NonEmpty(d, "key_prefix", &s.KeyPrefix)},
		"timeout":           {Parse: option.Duration(d, "timeout duration", &s.Timeout)},
		"pool_size":         {Parse: option.Integer(d, "pool_size", &s.PoolSize)},
		"deny_cache":        {Parse: s.parseDenyCache(d)},
		"require":           {Parse: option.Flag(d, "require", &s.Require)},
	})
}

func (s *RedisStore) parseAddress(d *caddyfile.Dispenser) option.Parser {
	read := option.Texts(d, &s.Address)
	return func() (string, error) {
		given, err := read()
		if err == nil && slices.Contains(s.Address, "") {
			err = d.Err("address is empty")
		}
		return option.Shown(given), err
	}
}

// parseDenyCache returns a parser of a duration, or of off, which is 0.
func (s *RedisStore) parseDenyCache(d *caddyfile.Dispenser) option.Parser {
	return option.Optional(&s.DenyCache, func(to *caddy.Duration) option.Parser {
		return option.Parsed(d, to, func(text string) (caddy.Duration, error) {
			if text == "off" {
				return 0, nil
			}
			v, err := option.ParseDuration(text)
			if err != nil {
				return 0, fmt.Errorf("invalid deny_cache duration '%s': %w; write a duration such as 1s, or off", text, err)
			}
			return caddy.Duration(v), nil
		})
	})
}

func (s *RedisStore) parseTLS(d *caddyfile.Dispenser) error {
	if err := option.OnlyBlock(d, "tls"); err != nil {
		return err
	}
	s.TLS = new(RedisTLS)
	return option.Block(d, "tls", "store redis tls ", map[string]option.Option{
		"ca":          {Parse: option.NonEmpty(d, "tls ca", &s.TLS.CA)},
		"server_name": {Parse: option.NonEmpty(d, "tls server_name", &s.TLS.ServerName)},
		"cert": {Parse: func() (string, error) {
			if !d.AllArgs(&s.TLS.Cert, &s.TLS.Key) {
				return "", d.ArgErr()
			}
			if s.TLS.Cert == "" || s.TLS.Key == "" {
				return "", d.Err("tls cert is empty")
			}
			return s.TLS.Cert, nil
		}},
		"insecure_skip_verify": {Parse: func() (string, error) {
			if d.NextArg() {
				return "", d.ArgErr()
			}
			s.TLS.InsecureSkipVerify = true
			return "true", nil
		}},
	})
}
