package caddyratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// policyOptions are the options of a zone that say for which requests its limit holds, and when a
// request counts:
//
//	plan <text> {
//	    <name>  [<algorithm>] [<events>/<window>] [<option> <value>...]... | { ... } | unlimited
//	    default <name> | reject [<status>]
//	}
//	missing_key   share | skip | reject [<status> [<challenge>]]
//	allow_unknown_placeholders [true|false]
//	invalid_limit <status>
//	exempt        <address or CIDR...> | <inline matcher> | @named | { ... }
//	block         [<status>] <like exempt>
//	charge        on_response {
//	    status <code>...
//	    header <name> [<value>]
//	}
//	cost_header   <name> [broken_off <cost>]
//	cost_request  [json <path>[*<weight>]...] [bytes [/<divisor>]] { ... }, see package cost
//	cost_response json <path>[*<weight>]... { ... }, see package cost
//	overrides     [true|false]
//	ban           <duration> after <n> refusals in <duration> [up_to <duration>]
//	headers       on | off
//	dry_run       [true|false]
//	enforce       <percent>
func policyOptions(h httpcaddyfile.Helper, z *Zone) map[string]option.Option {
	d := h.Dispenser
	return map[string]option.Option{
		"plan":                       {Parse: func() (string, error) { return parsePlans(d, z) }},
		"missing_key":                {Parse: func() (string, error) { return parseMissingKey(d, z) }},
		"allow_unknown_placeholders": {Parse: option.Flag(d, "allow_unknown_placeholders", &z.AllowUnknownPlaceholders)},
		"invalid_limit":              {Parse: option.Integer(d, "invalid_limit", &z.InvalidLimit)},
		"exempt":                     {Repeats: true, Parse: clients(h, "exempt", &z.ExemptRaw)},
		"block":                      {Repeats: true, Parse: func() (string, error) { return parseBlocked(h, z) }},
		"charge":                     {Parse: func() (string, error) { return parseCharge(d, z) }},
		"cost_header":                {Parse: func() (string, error) { return parseCostHeader(d, z) }},
		"cost_request":               {Parse: func() (shown string, err error) { z.CostRequest, err = cost.ParseRequest(d); return "", err }},
		"cost_response": {Parse: func() (shown string, err error) {
			z.CostResponse, err = cost.ParseResponse(d)
			return "", err
		}},
		"overrides": {Parse: option.Flag(d, "overrides", &z.Overrides)},
		"ban":       {Parse: func() (string, error) { return parseBan(d, z) }},
		"headers":   {Parse: option.Text(d, &z.Headers)},
		"dry_run":   {Parse: option.Flag(d, "dry_run", &z.DryRun)},
		"enforce":   {Parse: option.Optional(&z.Enforce, func(to *float64) option.Parser { return percent(d, "enforce", to) })},
	}
}

func parsePlans(d *caddyfile.Dispenser, z *Zone) (string, error) {
	p := &limit.Plans{Plans: make(map[string]*limit.Plan)}
	if !d.AllArgs(&p.Of) {
		return "", d.ArgErr()
	}
	z.Plan = p
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		var err error
		switch {
		case name == "default" && (p.Default != "" || p.Reject != 0):
			err = d.Err("plan default already specified")
		case name == "default":
			err = parseDefault(d, p)
		case p.Plans[name] != nil:
			err = d.Errf("plan already specified: %s", name)
		default:
			p.Plans[name] = new(limit.Plan)
			err = limit.ParsePlan(d, p.Plans[name])
		}
		if err != nil {
			return "", err
		}
	}
	return p.Of, nil
}

// parseDefault parses what holds for requests without a plan.
func parseDefault(d *caddyfile.Dispenser, p *limit.Plans) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	if p.Default = d.Val(); p.Default != zone.MissingReject {
		return noMore(d)
	}
	if p.Default, p.Reject = "", http.StatusForbidden; d.CountRemainingArgs() == 0 {
		return nil
	}
	_, err := option.Integer(d, "reject", &p.Reject)()
	return err
}

// parseMissingKey parses share | skip | reject [<status> [<challenge>]].
func parseMissingKey(d *caddyfile.Dispenser, z *Zone) (string, error) {
	if !d.NextArg() {
		return "", d.ArgErr()
	}
	if z.MissingKey = d.Val(); z.MissingKey != zone.MissingReject {
		return z.MissingKey, noMore(d)
	}
	if args := d.RemainingArgs(); len(args) > 0 {
		var err error
		if z.MissingKeyStatus, err = strconv.Atoi(args[0]); err != nil {
			return "", d.Errf("missing_key '%s' must be a whole number", args[0])
		}
		z.MissingKeyChallenge = strings.Join(args[1:], " ")
	}
	return z.MissingKey, nil
}

func noMore(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// clients parses addresses and CIDRs, or what match takes.
func clients(h httpcaddyfile.Helper, name string, to *caddyhttp.RawMatcherSets) option.Parser {
	d := h.Dispenser
	return func() (string, error) {
		args := d.RemainingArgs()
		if len(args) == 0 || !isRange(args[0]) && !isAlmostRange(args[0]) {
			for range args {
				d.Prev()
			}
			return "", parseMatch(h, name, to)
		}
		if i := slices.IndexFunc(args, func(arg string) bool { return !isRange(arg) }); i >= 0 {
			return "", d.Errf("%s: '%s' is neither an address nor a CIDR, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32; separate several by spaces", name, args[i])
		}
		var ranges []string
		for _, arg := range args {
			if arg == privateRanges {
				ranges = append(ranges, caddyhttp.PrivateRangesCIDR()...)
			} else {
				ranges = append(ranges, clientip.UnmapRange(arg))
			}
		}
		*to = append(*to, caddy.ModuleMap{"client_ip": caddyconfig.JSON(caddyhttp.MatchClientIP{Ranges: ranges}, nil)})
		return "", nil
	}
}

// privateRanges is the name of private ranges in Caddy's own matchers.
const privateRanges = "private_ranges"

func isRange(text string) bool {
	_, notAddress := netip.ParseAddr(text)
	_, notPrefix := netip.ParsePrefix(text)
	return notAddress == nil || notPrefix == nil || text == privateRanges
}

// isAlmostRange reports whether a text was meant to be an address or a CIDR.
func isAlmostRange(text string) bool {
	return !isMatcherToken(text) && strings.Trim(text, "0123456789abcdefABCDEF.:/,") == "" && strings.ContainsAny(text, ".:")
}

func parseBlocked(h httpcaddyfile.Helper, z *Zone) (string, error) {
	d := h.Dispenser
	if d.NextArg() {
		if status, err := strconv.Atoi(d.Val()); err != nil {
			d.Prev()
		} else if z.BlockStatus != 0 && z.BlockStatus != status {
			return "", d.Errf("block status already specified: %d", z.BlockStatus)
		} else {
			z.BlockStatus = status
		}
	}
	return clients(h, "block", &z.BlockRaw)()
}

func parseCharge(d *caddyfile.Dispenser, z *Zone) (string, error) {
	var when string
	if !d.AllArgs(&when) {
		return "", d.ArgErr()
	}
	if when != "on_response" {
		return "", d.Errf("charge must be on_response, got '%s'", when)
	}
	m := new(caddyhttp.ResponseMatcher)
	z.ChargeOnResponse = m
	return when, option.Block(d, "charge", "charge ", map[string]option.Option{
		"status": {Parse: func() (string, error) { return parseStatuses(d, m) }},
		"header": {Repeats: true, Parse: func() (string, error) { return parseHeader(d, m) }},
	})
}

// parseStatuses parses status codes, and classes such as 5xx.
func parseStatuses(d *caddyfile.Dispenser, m *caddyhttp.ResponseMatcher) (string, error) {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return "", d.ArgErr()
	}
	for _, arg := range args {
		digits, isClass := strings.CutSuffix(arg, "xx")
		code, err := strconv.Atoi(digits)
		if err != nil || len(arg) != 3 || !isClass && code < 100 {
			return "", d.Errf("status '%s' must be a code such as 401 or a class such as 5xx", arg)
		}
		m.StatusCode = append(m.StatusCode, code)
	}
	return strings.Join(args, " "), nil
}

// parseHeader parses a header that a response must have, with a value if one is given.
func parseHeader(d *caddyfile.Dispenser, m *caddyhttp.ResponseMatcher) (string, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return "", d.ArgErr()
	}
	value := "*"
	if len(args) == 2 {
		value = args[1]
	}
	if m.Headers == nil {
		m.Headers = make(http.Header)
	}
	m.Headers.Add(args[0], value)
	return "", nil
}

// parseCostHeader parses <name> [broken_off <cost>].
func parseCostHeader(d *caddyfile.Dispenser, z *Zone) (string, error) {
	args := d.RemainingArgs()
	if len(args) != 1 && (len(args) != 3 || args[1] != "broken_off") {
		return "", d.ArgErr()
	}
	if z.CostHeader = args[0]; z.CostHeader == "" {
		return "", d.Err("cost_header is empty")
	}
	if len(args) == 3 {
		n, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return "", d.Errf("cost_header broken_off '%s' must be a whole number", args[2])
		}
		z.CostBrokenOff = &n
	}
	return z.CostHeader, nil
}

// percent parses a number, with or without a percent sign.
func percent(d *caddyfile.Dispenser, name string, to *float64) option.Parser {
	return option.Parsed(d, to, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if err != nil || !(f >= 0 && f <= 100) {
			return 0, fmt.Errorf("%s '%s' must be from 0 to 100 percent", name, s)
		}
		return f, nil
	})
}

// parseLend parses lend, whose duration may be left out.
func parseLend(d *caddyfile.Dispenser, to **caddy.Duration) option.Parser {
	return func() (string, error) {
		*to = new(caddy.Duration)
		if d.CountRemainingArgs() == 0 {
			return "", nil
		}
		shown, err := option.Duration(d, "lend", *to)()
		if err == nil && **to == 0 {
			err = d.Err("lend 0 has no meaning: leave lend out, or write lend without a duration for what suits the limits")
		}
		return shown, err
	}
}
