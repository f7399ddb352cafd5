package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("rate_limit", parseDirective)
	httpcaddyfile.RegisterDirectiveOrder("rate_limit", httpcaddyfile.Before, "basic_auth")
	httpcaddyfile.RegisterDirectiveOrder("adaptive_concurrency", httpcaddyfile.Before, "basic_auth") // after rate_limit
	httpcaddyfile.RegisterGlobalOption("rate_limit", parseGlobalOption)
	httpcaddyfile.RegisterGlobalOption("rate_limit_page", parsePageOption)
}

// parseDirective parses the directive. Options that it does not set come from the global option.
// Syntax:
//
//	rate_limit [<matcher>] {
//	    zone <name> {
//	        match       <inline matcher> | @named | { ... }
//	        key         <text>
//	        ipv4_prefix <bits>
//	        ipv6_prefix <bits>
//	        events      <n>|<placeholder> [<n>]
//	        window      <duration>|day|week|month|year
//	        rate        <events>/<window>
//	        algorithm   <name> [<events>/<window>] | concurrency [<events>]
//	        burst       <n>|<placeholder> [<n>]
//	        refill      smooth|interval
//	        mode        meter|queue
//	        align       clock|first_request
//	        timezone    <name>
//	        lease       <duration>
//	        cost        <n>|<placeholder> [<n>]
//	        max_wait    <duration>
//	        lend        <duration>
//	        on_store_error allow|deny|local
//	        ...         see policyOptions
//	    }
//	    store           <backend> { ... }
//	    on_store_error  allow|deny|local
//	    instances       <n>
//	    headers         draft-10|x-ratelimit|spring ...|off
//	    header_name     <field> <name>
//	    on_limit        status|problem
//	    status          <code>
//	    log             off|first|all
//	    log_key         [true|false]
//	    jitter          <fraction>
//	    sweep_interval  <duration>
//	    disable_metrics [true|false]
//	    ...             see parseDistributed
//	}
func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	h.Next() // the directive's name
	if h.NextArg() {
		return nil, h.Errf("rate_limit takes a block, got '%s'; write rate_limit { zone <name> { key {client_ip}; rate 5/1m } }, each option on a line of its own",
			option.Shown(h.Val()))
	}
	known := handlerOptions(handler, h.Dispenser)
	known["distributed"] = option.Option{Parse: parseDistributed(h.Dispenser, &handler.Distributed)}
	known["storage"] = option.Option{Parse: parseStorage(h.Dispenser, &handler.Storage)}
	known["zone"] = option.Option{Repeats: true, Parse: func() (string, error) { return "", parseZone(h, handler) }}
	if err := option.Block(h.Dispenser, "rate_limit", "", known); err != nil {
		return nil, err
	}
	if defaults, ok := h.Option("rate_limit").(*Handler); ok {
		handler.inherit(defaults)
	}
	return handler, nil
}

// parseGlobalOption parses the defaults of all directives. It takes the same options, except zones.
func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next() // the option's name
	if existing != nil {
		return nil, d.Err("rate_limit already specified")
	}
	defaults := new(Handler)
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	known := handlerOptions(defaults, d)
	known["zone"] = option.Option{Forbidden: "zones belong in the rate_limit directive"}
	return defaults, option.Block(d, "rate_limit", "", known)
}

// parsePageOption parses the global option that switches the page off: rate_limit_page on|off.
func parsePageOption(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next() // the option's name
	if existing != nil {
		return nil, d.Err("rate_limit_page already specified")
	}
	var word string
	if !d.AllArgs(&word) {
		return nil, d.ArgErr()
	}
	if word != "on" && word != "off" {
		return nil, d.Errf("rate_limit_page must be on or off, got '%s'", option.Shown(word))
	}
	return httpcaddyfile.App{Name: "rate_limit", Value: caddyconfig.JSON(&App{DisablePage: word == "off"}, nil)}, nil
}

// inherit fills in the options that h does not set.
func (h *Handler) inherit(defaults *Handler) {
	if h.StoreRaw == nil {
		h.StoreRaw = slices.Clone(defaults.StoreRaw)
	}
	h.OnStoreError = cmp.Or(h.OnStoreError, defaults.OnStoreError)
	h.Instances = cmp.Or(h.Instances, defaults.Instances)
	if h.Headers == nil {
		h.Headers = slices.Clone(defaults.Headers)
		if h.HeaderNames == nil {
			h.HeaderNames = maps.Clone(defaults.HeaderNames)
		}
	}
	h.OnLimit, h.Status = cmp.Or(h.OnLimit, defaults.OnLimit), cmp.Or(h.Status, defaults.Status)
	h.Log, h.LogKey = cmp.Or(h.Log, defaults.Log), cmp.Or(h.LogKey, defaults.LogKey)
	h.Jitter = cmp.Or(h.Jitter, defaults.Jitter)
	h.SweepInterval = cmp.Or(h.SweepInterval, defaults.SweepInterval)
	h.DisableMetrics = cmp.Or(h.DisableMetrics, defaults.DisableMetrics)
}

func handlerOptions(h *Handler, d *caddyfile.Dispenser) map[string]option.Option {
	return map[string]option.Option{
		"store":           {Parse: func() (string, error) { return parseStore(h, d) }},
		"on_store_error":  {Parse: option.Text(d, &h.OnStoreError)},
		"instances":       {Parse: option.Optional(&h.Instances, func(n *int) option.Parser { return option.Integer(d, "instances", n) })},
		"headers":         {Parse: option.Texts(d, &h.Headers)},
		"header_name":     {Repeats: true, Parse: headerName(d, &h.HeaderNames)},
		"on_limit":        {Parse: option.Text(d, &h.OnLimit)},
		"status":          {Parse: option.Integer(d, "status", &h.Status)},
		"log":             {Parse: option.Text(d, &h.Log)},
		"log_key":         {Parse: option.Boolean(d, "log_key", &h.LogKey)},
		"jitter":          {Parse: option.Optional(&h.Jitter, func(f *float64) option.Parser { return option.Fraction(d, "jitter", f) })},
		"sweep_interval":  {Label: "sweep interval", Parse: sweepInterval(d, &h.SweepInterval)},
		"disable_metrics": {Parse: option.Boolean(d, "disable_metrics", &h.DisableMetrics)},
	}
}

// headerName parses a field and its other name.
func headerName(d *caddyfile.Dispenser, to *map[string]string) option.Parser {
	return func() (string, error) {
		var field, name string
		if !d.AllArgs(&field, &name) {
			return "", d.ArgErr()
		}
		if before, ok := (*to)[field]; ok {
			return "", d.Errf("header_name already specified: %s %s", field, before)
		}
		if *to == nil {
			*to = make(map[string]string)
		}
		(*to)[field] = name
		return "", nil
	}
}

// sweepInterval replaces 0 by the default, so that a 0 overrides the global option.
func sweepInterval(d *caddyfile.Dispenser, to *caddy.Duration) option.Parser {
	read := option.Duration(d, "sweep interval", to)
	return func() (string, error) {
		shown, err := read()
		if *to == 0 {
			*to = caddy.Duration(memorystore.DefaultSweepInterval)
		}
		return shown, err
	}
}

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

// storeNames returns the names of the store modules in this Caddy, sorted.
func storeNames() []string {
	var names []string
	for _, module := range caddy.GetModules(storesNamespace) {
		names = append(names, module.ID.Name())
	}
	return names
}

func parseZone(h httpcaddyfile.Helper, handler *Handler) error {
	d := h.Dispenser
	if !d.NextArg() {
		return d.ArgErr()
	}
	name, start := d.Val(), *d
	if d.NextArg() {
		return d.ArgErr()
	}
	if _, ok := handler.RateLimits[name]; ok {
		return d.Errf("zone already specified: %s", name)
	}
	z := new(Zone)
	known := limit.Options(d, &z.Limit)
	maps.Copy(known, map[string]option.Option{
		"match":       {Repeats: true, Parse: matchers(h, "match", &z.MatcherSetsRaw)},
		"key":         {Parse: option.OneText(d, "key", &z.Key)},
		"limit":       {Forbidden: "a zone has no option limit: write rate 100/1m, or events 100 and window 1m"},
		"max_events":  {Forbidden: "max_events is the name in JSON: write events, or rate 100/1m"},
		"ipv4_prefix": {Parse: parsePrefix(d, "ipv4_prefix", 32, &z.IPv4Prefix)},
		"ipv6_prefix": {Parse: parsePrefix(d, "ipv6_prefix", 128, &z.IPv6Prefix)},
		"cost":        {Parse: option.Optional(&z.Cost, func(to *limit.Amount) option.Parser { return limit.ParseAmount(d, limit.WholeNumber(d, "cost"), to) })},

		"lend":           {Parse: parseLend(d, &z.Lend)},
		"on_store_error": {Parse: option.Text(d, &z.OnStoreError)},
	})
	maps.Copy(known, policyOptions(h, z))
	if err := option.Block(d, "zone "+name, "zone ", known); err != nil {
		return err
	}
	if missing := z.Missing(); missing != "" && z.Plan == nil {
		return start.Errf("zone %q: %s", name, missing)
	}
	if err := z.check(name); err != nil {
		return start.WrapErr(fmt.Errorf("zone %q: %w", name, err))
	}
	if handler.RateLimits == nil {
		handler.RateLimits = make(map[string]*Zone)
	}
	handler.RateLimits[name] = z
	return nil
}

// parsePrefix returns a parser of the length of a prefix. In JSON, 0 would look like an option that is not set.
func parsePrefix(d *caddyfile.Dispenser, name string, longest int, to *int) option.Parser {
	read := option.MholtInteger(d, name, to)
	return func() (string, error) {
		text, err := read()
		if err == nil && *to == 0 {
			err = d.Errf("%s must be from 1 to %d, got 0", name, longest)
		}
		return text, err
	}
}

// matchers parses a matcher token, like that of a directive, or a set of matchers.
func matchers(h httpcaddyfile.Helper, name string, to *caddyhttp.RawMatcherSets) option.Parser {
	return func() (string, error) { return "", parseMatch(h, name, to) }
}

func parseMatch(h httpcaddyfile.Helper, name string, to *caddyhttp.RawMatcherSets) error {
	d := h.Dispenser
	set, err := caddy.ModuleMap{}, error(nil) // of no matchers, which is all requests
	switch args := d.RemainingArgs(); {
	case len(args) == 0 && !option.OpensBlock(d):
		return d.ArgErr()
	case len(args) > 0 && args[0] != "*" && strings.HasPrefix(args[0], "*"):
		return d.Errf("'%s' is not a matcher: write %s path %s", args[0], name, strings.Join(args, " "))
	case len(args) == 0 || !isMatcherToken(args[0]):
		for range args {
			d.Prev()
		}
		set, err = caddyhttp.ParseCaddyfileNestedMatcherSet(d)
	case !slices.ContainsFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") }) && len(args) > 1:
		return d.Errf("%s takes one path: write %s path %s", name, name, strings.Join(args, " "))
	case len(args) > 1:
		return d.Errf("%s takes one matcher, got '%s': write one %s line for each", name, strings.Join(args, " "), name)
	case args[0] != "*":
		d.Prev()
		if set, _, err = h.MatcherToken(); err != nil {
			err = d.WrapErr(err)
		}
	}
	if err != nil {
		return err
	}
	*to = append(*to, set)
	return nil
}

func isMatcherToken(arg string) bool {
	return arg == "*" || strings.HasPrefix(arg, "@") || strings.HasPrefix(arg, "/")
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
