package caddyratelimit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// parser reads the arguments of one option. It returns them as an error may show them.
type parser = func() (shown string, err error)

// text takes one argument as it is.
func text(d *caddyfile.Dispenser, to *string) parser {
	return func() (string, error) {
		if !d.AllArgs(to) {
			return "", d.ArgErr()
		}
		return *to, nil
	}
}

// filled takes one argument that is not empty.
func filled(d *caddyfile.Dispenser, name string, to *string) parser {
	read := text(d, to)
	return func() (string, error) {
		shown, err := read()
		if err == nil && *to == "" {
			err = d.Errf("%s is empty", name)
		}
		return shown, err
	}
}

// texts takes one argument or more.
func texts(d *caddyfile.Dispenser, to *[]string) parser {
	return func() (string, error) {
		if *to = d.RemainingArgs(); len(*to) == 0 {
			return "", d.ArgErr()
		}
		return strings.Join(*to, " "), nil
	}
}

const hidden = "(hidden)"

// secret takes one argument that no error may show, also not if there are several.
func secret(d *caddyfile.Dispenser, name string, to *string) parser {
	return func() (string, error) {
		args := d.RemainingArgs()
		if len(args) != 1 {
			return "", d.Errf("%s takes one argument", name)
		}
		if *to = args[0]; *to == "" {
			return "", d.Errf("%s is empty", name)
		}
		return hidden, nil
	}
}

// shown is a text as an error may show it: not if it may hold a password, as in
// redis://user:password@host.
func shown(text string) string {
	if strings.Index(text, "@") > 0 || strings.Contains(text, "://") {
		return hidden
	}
	return text
}

// parsed takes one argument that a function understands.
func parsed[T any](d *caddyfile.Dispenser, to *T, parse func(string) (T, error)) parser {
	return func() (string, error) {
		var arg string
		if !d.AllArgs(&arg) {
			return "", d.ArgErr()
		}
		value, err := parse(arg)
		if err != nil {
			return "", d.WrapErr(err)
		}
		*to = value
		return arg, nil
	}
}

// optional makes room for a value of which it matters whether it is given.
func optional[T any](to **T, parse func(*T) parser) parser {
	return func() (string, error) {
		*to = new(T)
		return parse(*to)()
	}
}

func integer[T int | int64](d *caddyfile.Dispenser, name string, to *T) parser {
	return parsed(d, to, func(s string) (T, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%s '%s' must be a whole number", name, s)
		}
		return T(n), nil
	})
}

// The parsers below word their errors as github.com/mholt/caddy-ratelimit does, for the
// options that it has.

func mholtInteger[T int | int64](d *caddyfile.Dispenser, name string, to *T) parser {
	return parsed(d, to, func(s string) (T, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("invalid %s integer '%s': %w", name, s, err)
		}
		return T(n), nil
	})
}

func fraction(d *caddyfile.Dispenser, what string, to *float64) parser {
	return parsed(d, to, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			err = errors.New("must be from 0 to 1") // JSON has no such numbers
		}
		if err != nil {
			return 0, fmt.Errorf("invalid %s '%s': %w", what, s, err)
		}
		return f, nil
	})
}

func duration(d *caddyfile.Dispenser, what string, to *caddy.Duration) parser {
	return parsed(d, to, func(s string) (caddy.Duration, error) {
		v, err := caddy.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("invalid %s '%s': %w", what, s, err)
		}
		return caddy.Duration(v), nil
	})
}

// boolean takes true, false or nothing, which is true.
func boolean(d *caddyfile.Dispenser, name string, to **bool) parser {
	return func() (string, error) {
		args := d.RemainingArgs()
		value := len(args) == 0 || len(args) == 1 && args[0] == "true"
		if !value && (len(args) > 1 || args[0] != "false") {
			return "", d.Errf("invalid %s '%s': must be true or false", name, strings.Join(args, " "))
		}
		*to = &value
		return strconv.FormatBool(value), nil
	}
}
