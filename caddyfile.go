package caddyratelimit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("rate_limit", parseDirective)
	httpcaddyfile.RegisterDirectiveOrder("rate_limit", httpcaddyfile.Before, "basic_auth")
	httpcaddyfile.RegisterGlobalOption("rate_limit", parseGlobalOption)
}

// parseDirective parses the directive. What it does not say comes from the global
// option. Syntax:
//
//	rate_limit [<matcher>] {
//	    zone <name> {
//	        match       <inline matcher> | @named | { ... }
//	        key         <text>
//	        ipv4_prefix <bits>
//	        ipv6_prefix <bits>
//	        events      <n>
//	        window      <duration>
//	        algorithm   <name> [<events>/<window>]
//	        burst       <n>
//	        cost        <n>
//	    }
//	    store          <backend> { ... }
//	    on_store_error allow|deny
//	    headers        draft-10|off
//	    status         <code>
//	    log_key        [true|false]
//	    jitter         <fraction>
//	    sweep_interval <duration>
//	}
func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	h.Next() // the directive's name
	if h.NextArg() {
		return nil, h.ArgErr()
	}
	known := handlerOptions(handler, h.Dispenser)
	known["zone"] = option{repeats: true, parse: func() (any, error) { return nil, parseZone(h, handler) }}
	if err := parseBlock(h.Dispenser, "rate_limit", "", known); err != nil {
		return nil, err
	}
	if defaults, ok := h.Option("rate_limit").(*Handler); ok {
		handler.inherit(defaults)
	}
	return handler, nil
}

// parseGlobalOption parses the defaults of all directives: the same options but zones.
func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("rate_limit already specified")
	}
	defaults := new(Handler)
	d.Next() // the option's name
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	return defaults, parseBlock(d, "rate_limit", "", handlerOptions(defaults, d))
}

// inherit fills in what h does not say.
func (h *Handler) inherit(defaults *Handler) {
	if h.StoreRaw == nil {
		h.StoreRaw = slices.Clone(defaults.StoreRaw)
	}
	if h.OnStoreError == "" {
		h.OnStoreError = defaults.OnStoreError
	}
	if h.Headers == nil {
		h.Headers = slices.Clone(defaults.Headers)
	}
	if h.Status == 0 {
		h.Status = defaults.Status
	}
	if h.Jitter == 0 {
		h.Jitter = defaults.Jitter
	}
	if h.SweepInterval == 0 {
		h.SweepInterval = defaults.SweepInterval
	}
	if h.LogKey == nil {
		h.LogKey = defaults.LogKey
	}
}

func handlerOptions(h *Handler, d *caddyfile.Dispenser) map[string]option {
	return map[string]option{
		"store":          {parse: func() (any, error) { return parseStore(h, d) }},
		"on_store_error": {parse: text(d, &h.OnStoreError)},
		"headers":        {parse: texts(d, &h.Headers)},
		"status":         {parse: integer(d, "status", &h.Status)},
		"log_key":        {parse: boolean(d, "log_key", &h.LogKey)},
		"jitter":         {parse: fraction(d, "jitter percentage", &h.Jitter)},
		"sweep_interval": {label: "sweep interval", parse: duration(d, "sweep interval", &h.SweepInterval)},
		"distributed":    {parse: refuse(d, "distributed")},
		"storage":        {parse: refuse(d, "storage")},
	}
}

func parseZone(h httpcaddyfile.Helper, handler *Handler) error {
	d := h.Dispenser
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	if d.NextArg() {
		return d.ArgErr()
	}
	if _, ok := handler.RateLimits[name]; ok {
		return d.Errf("zone already specified: %s", name)
	}
	z := new(Zone)
	err := parseBlock(d, "zone", "zone ", map[string]option{
		"match":       {repeats: true, parse: func() (any, error) { return nil, parseMatch(h, z) }},
		"key":         {parse: text(d, &z.Key)},
		"ipv4_prefix": {parse: integer(d, "ipv4_prefix", &z.IPv4Prefix)},
		"ipv6_prefix": {parse: integer(d, "ipv6_prefix", &z.IPv6Prefix)},
		"events":      {label: "max events", parse: optionalInteger(d, "max events", &z.MaxEvents)},
		"window":      {parse: duration(d, "window", &z.Window)},
		"algorithm":   {parse: func() (any, error) { return parseAlgorithm(d, z) }},
		"burst":       {parse: integer(d, "burst", &z.Burst)},
		"cost":        {parse: optionalInteger(d, "cost", &z.Cost)},
	})
	if err != nil {
		return err
	}
	if z.MaxEvents == nil || z.Window == 0 {
		return d.Err("a rate limit zone requires both a window and maximum events")
	}
	if handler.RateLimits == nil {
		handler.RateLimits = make(map[string]*Zone)
	}
	handler.RateLimits[name] = z
	return nil
}

// parseMatch parses a matcher token, as directives take one, or a set of matchers.
func parseMatch(h httpcaddyfile.Helper, z *Zone) error {
	d := h.Dispenser
	var set caddy.ModuleMap
	var err error
	if next := d.RemainingArgs(); len(next) == 1 && strings.ContainsAny(next[0][:min(1, len(next[0]))], "@/*") {
		d.Prev()
		set, _, err = h.MatcherToken()
	} else {
		for range next {
			d.Prev()
		}
		set, err = caddyhttp.ParseCaddyfileNestedMatcherSet(d)
	}
	if err != nil {
		return err
	}
	if set == nil {
		set = caddy.ModuleMap{} // all requests
	}
	z.MatcherSetsRaw = append(z.MatcherSetsRaw, set)
	return nil
}

// parseAlgorithm parses a name, and a rate as in `token_bucket 10/1s`.
func parseAlgorithm(d *caddyfile.Dispenser, z *Zone) (any, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return nil, d.ArgErr()
	}
	z.Algorithm = args[0]
	if len(args) == 2 {
		events, window, err := parseRate(args[1])
		if err != nil {
			return nil, d.Errf("invalid rate '%s': %v", args[1], err)
		}
		if z.MaxEvents != nil || z.Window != 0 {
			return nil, d.Errf("rate '%s' says events and window, which are already specified", args[1])
		}
		z.MaxEvents, z.Window = &events, caddy.Duration(window)
	}
	return z.Algorithm, nil
}

func parseStore(h *Handler, d *caddyfile.Dispenser) (any, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, "http.rate_limit.stores."+name)
	if err != nil {
		return nil, err
	}
	h.StoreRaw = json.RawMessage(caddyconfig.JSONModuleObject(module, "backend", name, nil))
	return name, nil
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. Syntax:
//
//	memory {
//	    max_keys <n>
//	}
func (m *MemoryStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if d.NextArg() {
		return d.ArgErr()
	}
	return parseBlock(d, "store memory", "", map[string]option{
		"max_keys": {parse: integer(d, "max_keys", &m.MaxKeys)},
	})
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. Syntax:
//
//	redis {
//	    address    <host:port|unix//path>
//	    url        <redis://...>
//	    username   <text>
//	    password   <text>
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
//	}
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if d.NextArg() {
		return d.ArgErr()
	}
	secret := func(to *string) func() (any, error) {
		read := text(d, to)
		return func() (any, error) {
			_, err := read()
			return "(hidden)", err
		}
	}
	return parseBlock(d, "store redis", "", map[string]option{
		"address":    {parse: texts(d, &s.Address)},
		"url":        {parse: secret(&s.URL)},
		"username":   {parse: text(d, &s.Username)},
		"password":   {parse: secret(&s.Password)},
		"db":         {parse: integer(d, "db", &s.DB)},
		"tls":        {parse: func() (any, error) { return "", s.parseTLS(d) }},
		"key_prefix": {parse: text(d, &s.KeyPrefix)},
		"timeout":    {parse: duration(d, "timeout", &s.Timeout)},
		"pool_size":  {parse: integer(d, "pool_size", &s.PoolSize)},
	})
}

func (s *RedisStore) parseTLS(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	s.TLS = new(RedisTLS)
	return parseBlock(d, "tls", "tls ", map[string]option{
		"ca": {parse: text(d, &s.TLS.CA)},
		"cert": {parse: func() (any, error) {
			if !d.AllArgs(&s.TLS.Cert, &s.TLS.Key) {
				return nil, d.ArgErr()
			}
			return s.TLS.Cert, nil
		}},
		"server_name": {parse: text(d, &s.TLS.ServerName)},
		"insecure_skip_verify": {parse: func() (any, error) {
			if d.NextArg() {
				return nil, d.ArgErr()
			}
			s.TLS.InsecureSkipVerify = true
			return true, nil
		}},
	})
}

// option is an option of a block. It may stand once, unless it repeats.
type option struct {
	label   string // in the error about a second one; the name if empty
	repeats bool

	// parse reads the arguments. What it returns is shown in that error.
	parse func() (any, error)
}

// parseBlock reads a block of known options.
func parseBlock(d *caddyfile.Dispenser, what, prefix string, known map[string]option) error {
	seen := make(map[string]any)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		o, ok := known[name]
		if !ok {
			return d.Errf("unknown option of %s: '%s', must be one of %s", what, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if before, twice := seen[name]; twice && !o.repeats {
			label := o.label
			if label == "" {
				label = name
			}
			return d.Errf("%s%s already specified: %v", prefix, label, before)
		}
		value, err := o.parse()
		if err != nil {
			return err
		}
		seen[name] = value
	}
	return nil
}
