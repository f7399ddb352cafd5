package adaptive

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

func init() { httpcaddyfile.RegisterHandlerDirective("adaptive_concurrency", parseDirective) }

// parseDirective parses the directive. Syntax:
//
//	adaptive_concurrency [<matcher>] [<name>] {
//	    key         <text>
//	    ipv4_prefix <bits>
//	    ipv6_prefix <bits>
//	    priority    <text> <class>...
//	    max_wait    <duration>
//	    min         <n>
//	    max         <n>
//	    hold        response
//	}
func parseDirective(helper httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h, d := new(Handler), helper.Dispenser
	d.Next() // the directive's name
	start := *d
	switch args := d.RemainingArgs(); {
	case len(args) > 1:
		return nil, d.ArgErr()
	case len(args) == 1:
		h.Name = args[0]
	case helper.State[appName] != nil:
		return nil, d.Err("a second adaptive_concurrency needs a name, as in adaptive_concurrency other: those with the same name share a limit")
	default:
		helper.State[appName] = h
	}
	err := option.Block(d, "adaptive_concurrency", "", map[string]option.Option{
		"key":         {Parse: option.OneText(d, "key", &h.Key)},
		"ipv4_prefix": {Parse: number(d, "ipv4_prefix", &h.IPv4Prefix)},
		"ipv6_prefix": {Parse: number(d, "ipv6_prefix", &h.IPv6Prefix)},
		"priority":    {Parse: priority(d, &h.Priority)},
		"max_wait":    {Parse: option.Duration(d, "max_wait", &h.MaxWait)},
		"min":         {Parse: number(d, "min", &h.Min)},
		"max":         {Parse: number(d, "max", &h.Max)},
		"hold":        {Parse: hold(d, &h.Hold)},
	})
	if err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, start.WrapErr(err)
	}
	return h, nil
}

// number parses a number above 0. In JSON, 0 would look like an option that is not set.
func number(d *caddyfile.Dispenser, name string, to *int) option.Parser {
	read := option.Integer(d, name, to)
	return func() (string, error) {
		text, err := read()
		if err == nil && *to == 0 {
			err = d.Errf("%s must be at least 1, got 0", name)
		}
		return text, err
	}
}

// hold parses response.
func hold(d *caddyfile.Dispenser, to *string) option.Parser {
	read := option.Text(d, to)
	return func() (string, error) {
		text, err := read()
		if err == nil && text != holdResponse {
			err = d.Errf("hold must be %s, got '%s'", holdResponse, option.Shown(text))
		}
		return text, err
	}
}

func priority(d *caddyfile.Dispenser, to **Priority) option.Parser {
	return func() (string, error) {
		args := d.RemainingArgs()
		if len(args) < 2 {
			return "", d.ArgErr()
		}
		*to = &Priority{Of: args[0], Classes: args[1:]}
		return strings.Join(args, " "), nil
	}
}
