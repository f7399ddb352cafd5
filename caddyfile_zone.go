package caddyratelimit

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

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
	known := limit.Options(d, &z.Limit)
	maps.Copy(known, map[string]option.Option{
		"match":       {Repeats: true, Parse: matchers(h, "match", &z.MatcherSetsRaw)},
		"key":         {Parse: option.Text(d, &z.Key)},
		"ipv4_prefix": {Parse: option.MholtInteger(d, "ipv4_prefix", &z.IPv4Prefix)},
		"ipv6_prefix": {Parse: option.MholtInteger(d, "ipv6_prefix", &z.IPv6Prefix)},
		"cost":        {Parse: option.Optional(&z.Cost, func(to *limit.Amount) option.Parser { return limit.ParseAmount(d, limit.WholeNumber(d, "cost"), to) })},

		"on_store_error": {Parse: option.Text(d, &z.OnStoreError)},
	})
	maps.Copy(known, policyOptions(h, z))
	if err := option.Block(d, "zone", "zone ", known); err != nil {
		return err
	}
	if limit.Lends(z.Algorithm) && z.MaxEvents == nil && z.Plan == nil {
		return d.Err("a rate limit zone for concurrency requires maximum events")
	}
	if (z.MaxEvents == nil || z.Window == (limit.Window{}) && !limit.Lends(z.Algorithm)) && z.Plan == nil {
		return d.Err("a rate limit zone requires both a window and maximum events")
	}
	if handler.RateLimits == nil {
		handler.RateLimits = make(map[string]*Zone)
	}
	handler.RateLimits[name] = z
	return nil
}

// matchers takes a matcher token, as directives take one, or a set of matchers.
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
		return d.Errf("'%s' is no matcher: write %s path %s", args[0], name, strings.Join(args, " "))
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
