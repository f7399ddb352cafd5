package adaptive

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

func init() { httpcaddyfile.RegisterHandlerDirective("adaptive_concurrency", parseDirective) }

// parseDirective parses the directive, whose options are the fields of [Handler].
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
	if err := option.Block(d, "adaptive_concurrency", h, nil); err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, start.WrapErr(err)
	}
	return h, nil
}
