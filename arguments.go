package caddyratelimit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// The functions here each make a parser of one option's arguments.

// text takes one argument as it is.
func text(d *caddyfile.Dispenser, to *string) func() (any, error) {
	return func() (any, error) {
		if !d.AllArgs(to) {
			return nil, d.ArgErr()
		}
		return *to, nil
	}
}

// texts takes one argument or more.
func texts(d *caddyfile.Dispenser, to *[]string) func() (any, error) {
	return func() (any, error) {
		if *to = d.RemainingArgs(); len(*to) == 0 {
			return nil, d.ArgErr()
		}
		return strings.Join(*to, " "), nil
	}
}

// parsed takes one argument that a function understands.
func parsed[T any](d *caddyfile.Dispenser, what string, to *T, parse func(string) (T, error)) func() (any, error) {
	return func() (any, error) {
		var arg string
		if !d.AllArgs(&arg) {
			return nil, d.ArgErr()
		}
		value, err := parse(arg)
		if err != nil {
			return nil, d.Errf("invalid %s '%s': %v", what, arg, err)
		}
		*to = value
		return value, nil
	}
}

func integer[T int | int64](d *caddyfile.Dispenser, what string, to *T) func() (any, error) {
	return parsed(d, what+" integer", to, func(s string) (T, error) {
		n, err := strconv.Atoi(s)
		return T(n), err
	})
}

func optionalInteger(d *caddyfile.Dispenser, what string, to **int64) func() (any, error) {
	return func() (any, error) {
		*to = new(int64)
		return integer(d, what, *to)()
	}
}

func fraction(d *caddyfile.Dispenser, what string, to *float64) func() (any, error) {
	return parsed(d, what, to, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func duration(d *caddyfile.Dispenser, what string, to *caddy.Duration) func() (any, error) {
	return parsed(d, what+" duration", to, func(s string) (caddy.Duration, error) {
		v, err := caddy.ParseDuration(s)
		return caddy.Duration(v), err
	})
}

// boolean takes true, false or nothing, which is true.
func boolean(d *caddyfile.Dispenser, what string, to **bool) func() (any, error) {
	return func() (any, error) {
		value := true
		*to = &value
		args := d.RemainingArgs()
		if len(args) == 0 {
			return value, nil
		}
		if len(args) > 1 || args[0] != "true" && args[0] != "false" {
			return nil, d.Errf("invalid %s '%s': must be true or false", what, strings.Join(args, " "))
		}
		value = args[0] == "true"
		return value, nil
	}
}

// refuse is for options of github.com/mholt/caddy-ratelimit that are not supported.
func refuse(d *caddyfile.Dispenser, name string) func() (any, error) {
	return func() (any, error) {
		return nil, d.Errf("%s is not supported: instances share one exact limit through Redis: write store redis { address <host:port> }", name)
	}
}

// parseRate parses rates such as 10/1s, 100/m and 1000/day.
func parseRate(s string) (events int64, window time.Duration, err error) {
	count, per, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("write events/window, such as 10/1s, 100/m or 1000/day")
	}
	if events, err = strconv.ParseInt(count, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("events '%s' must be a whole number", count)
	}
	if word, ok := windowWords[per]; ok {
		return events, word, nil
	}
	if window, err = caddy.ParseDuration(per); err != nil {
		return 0, 0, fmt.Errorf("window '%s' must be a duration such as 1s or 5m, or one of s, m, h, d, second, minute, hour, day", per)
	}
	return events, window, nil
}

var windowWords = map[string]time.Duration{
	"s": time.Second, "second": time.Second,
	"m": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}
