package caddyratelimit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

func init() {
	httpcaddyfile.RegisterDirective("rate_limit", parseRoute)
	httpcaddyfile.RegisterDirectiveOrder("rate_limit", httpcaddyfile.Before, "basic_auth")
	httpcaddyfile.RegisterDirectiveOrder("adaptive_concurrency", httpcaddyfile.Before, "basic_auth") // after rate_limit
	httpcaddyfile.RegisterGlobalOption("rate_limit", parseGlobalOption)
}

// parseRoute parses the directive with its matcher. The matcher /* means all requests, but Caddy's does not match a target
// without a path (GET http://example.com), which would pass without a limit. So it is left out.
func parseRoute(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	matcher, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if string(matcher["path"]) == `["/*"]` {
		delete(matcher, "path")
	}
	for _, raw := range matcher {
		if fields := zone.FieldsIn(raw); len(fields) > 0 {
			h.Next() // to the directive again
			return nil, h.Errf("the matcher of rate_limit looks at {%s%s}, which is empty before a zone looks at it: write match in the zone",
				placeholder.JSONPrefix, fields[0])
		}
	}
	if len(matcher) == 0 {
		matcher = nil
	}
	handler, err := parseDirective(h)
	if err != nil {
		return nil, err
	}
	return h.NewRoute(matcher, handler), nil
}

// parseDirective parses the directive. Options that it does not set come from the global option. The tags of [Handler]
// and of [config.Zone] have its syntax.
func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	h.Next() // the directive's name
	if args := h.RemainingArgs(); len(args) > 0 {
		return nil, h.Errf("rate_limit takes a block, got '%s'; write rate_limit { zone <name> { key {client_ip}; rate 5/1m } }, each option on a line of its own",
			option.Shown(strings.Join(args, " ")))
	}
	lines := handler.lines(h.Dispenser)
	lines["zone"] = func() error { return parseZone(h, handler) }
	own := option.Names(handler)
	for _, name := range option.Names(config.Zone{}) {
		if !slices.Contains(own, name) {
			lines[name] = func() error {
				line := strings.Join(append([]string{name}, h.RemainingArgs()...), " ")
				return h.Errf("%s belongs in a zone: write zone <name> { %s }, each option on a line of its own", name, option.Shown(line))
			}
		}
	}
	if err := option.Block(h.Dispenser, "rate_limit", handler, lines); err != nil {
		return nil, err
	}
	if defaults, ok := h.Option("rate_limit").(*Handler); ok {
		if handler.Headers != nil && handler.HeaderName == nil {
			handler.HeaderName = make(map[string]string) // the names are for the headers of the global option
		}
		option.Inherit(handler, defaults)
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
	lines := defaults.lines(d)
	lines["zone"] = func() error { return d.Err("zone belongs in the rate_limit directive") }
	return defaults, option.Block(d, "rate_limit", defaults, lines)
}

// lines are the options that are more than a value.
func (h *Handler) lines(d *caddyfile.Dispenser) option.Lines {
	// without says just that an option is there: what is in it has no effect, and may be secret.
	without := func(option *json.RawMessage) func() error {
		return func() error {
			d.NextSegment()
			*option = json.RawMessage("{}")
			return nil
		}
	}
	return option.Lines{
		"store": func() error { return parseStore(h, d) }, "distributed": without(&h.Distributed), "storage": without(&h.Storage),
	}
}

func parseStore(h *Handler, d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	if known := storeNames(); !slices.Contains(known, name) {
		return d.Errf("unknown store '%s', must be one of %s", option.Shown(name), strings.Join(known, ", "))
	}
	module, err := caddyfile.UnmarshalModule(d, storesNamespace+"."+name)
	if err != nil {
		return err
	}
	var warnings []caddyconfig.Warning
	h.StoreRaw = json.RawMessage(caddyconfig.JSONModuleObject(module, "backend", name, &warnings))
	if len(warnings) > 0 { // without it the handler would count in memory
		return d.Errf("store %s: %s", name, warnings[0].Message)
	}
	return nil
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
		return d.Err("zone takes a name, and its options in a block")
	}
	name, start := d.Val(), *d
	if _, ok := handler.RateLimits[name]; ok {
		return d.Errf("zone already specified: %s; give this one another name", name)
	}
	z := new(config.Zone)
	lines := z.Lines(d)
	lines["match"] = func() error { return parseMatch(h, "match", h.RemainingArgs(), &z.MatcherSetsRaw) }
	lines["exempt"] = func() error { return parseClients(h, "exempt", &z.ExemptRaw) }
	lines["block"] = func() error { return parseClients(h, "block", &z.BlockRaw) }
	if err := option.Block(d, "zone "+name, z, lines); err != nil {
		return err
	}
	if _, err := zone.New(z, zone.Place{Name: name}, new(stats.Counters)); err != nil {
		return start.WrapErr(fmt.Errorf("zone %q: %w", name, err))
	}
	if handler.RateLimits == nil {
		handler.RateLimits = make(map[string]*config.Zone)
	}
	handler.RateLimits[name] = z
	return nil
}

// parseClients parses addresses and CIDRs, or what match takes.
func parseClients(h httpcaddyfile.Helper, name string, to *caddyhttp.RawMatcherSets) error {
	d := h.Dispenser
	args := d.RemainingArgs()
	if len(args) == 0 || !isRange(args[0]) {
		return parseMatch(h, name, args, to)
	}
	var ranges []string
	for _, arg := range args {
		_, notAddress := netip.ParseAddr(arg)
		_, notPrefix := netip.ParsePrefix(arg)
		switch {
		case arg == privateRanges:
			ranges = append(ranges, caddyhttp.PrivateRangesCIDR()...)
		case notAddress != nil && notPrefix != nil:
			return d.Errf("%s: '%s' is neither an address nor a CIDR, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32; separate several by spaces", name, arg)
		default:
			ranges = append(ranges, clientip.UnmapRange(arg))
		}
	}
	*to = append(*to, caddy.ModuleMap{"client_ip": caddyconfig.JSON(caddyhttp.MatchClientIP{Ranges: ranges}, nil)})
	return nil
}

// privateRanges is the name of private ranges in Caddy's own matchers.
const privateRanges = "private_ranges"

// isRange reports whether a text was meant to be addresses.
func isRange(text string) bool {
	text, _, _ = strings.Cut(text, "%") // of an interface
	return text == privateRanges || !isMatcherToken(text) && strings.Trim(text, "0123456789abcdefABCDEF.:/,") == "" && strings.ContainsAny(text, ".:")
}

// parseMatch parses what match takes, whose arguments on its line were read: "*" for all requests, a matcher token, like that of a
// directive, or a set of matchers, on the line or in a block.
func parseMatch(h httpcaddyfile.Helper, name string, args []string, to *caddyhttp.RawMatcherSets) error {
	d := h.Dispenser
	switch {
	case len(args) == 1 && args[0] == "*":
		*to = append(*to, caddy.ModuleMap{})
		return nil
	case len(args) == 0 && !option.OpensBlock(d):
		return d.ArgErr()
	case len(args) > 0 && args[0] == "":
		return d.Errf("%s is empty", name)
	case second(args) != "":
		return d.Errf("%s takes one matcher on its line, and '%s' is another: write a block with a line for each", name, second(args))
	case len(args) > 1 && isMatcherToken(args[0]):
		return d.Errf("%s takes one matcher, got '%s': write one %s line for each", name, strings.Join(args, " "), name)
	}
	for range args {
		d.Prev()
	}
	set, err := readMatcher(h, args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// Without matchers a set matches all requests, and one of addresses without any matches none.
	if len(set) == 0 || string(set["client_ip"]) == "{}" || string(set["remote_ip"]) == "{}" {
		return d.Errf("%s has a matcher without values: is a variable of the environment empty?", name)
	}
	*to = append(*to, set)
	return nil
}

// readMatcher reads a matcher token, or a set of matchers, of which these arguments are on the line.
func readMatcher(h httpcaddyfile.Helper, args []string) (set caddy.ModuleMap, err error) {
	if len(args) > 0 && isMatcherToken(args[0]) {
		if set, _, err = h.MatcherToken(); err != nil {
			err = h.WrapErr(err)
		}
		return set, err
	}
	set, err = caddyhttp.ParseCaddyfileNestedMatcherSet(h.Dispenser)
	if err != nil && len(args) > 0 && strings.Contains(err.Error(), "not registered") {
		err = h.Errf("there is no matcher '%s': write its name and its values, such as path /login*", args[0])
	}
	return set, err
}

// second returns the name of another matcher on the line of one: Caddy takes it for a value of the first.
func second(args []string) string {
	if len(args) > 0 && args[0] == "not" {
		args = args[1:]
	}
	if len(args) > 0 && slices.Contains([]string{"method", "path", "host", "client_ip", "remote_ip"}, args[0]) {
		for _, arg := range args[1:] {
			if _, err := caddy.GetModule("http.matchers." + arg); err == nil {
				return arg
			}
		}
	}
	return ""
}

func isMatcherToken(arg string) bool {
	return strings.HasPrefix(arg, "@") || strings.HasPrefix(arg, "/")
}
