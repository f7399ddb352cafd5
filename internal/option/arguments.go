package option

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Parser reads the arguments of one option. It returns them in the form in which errors may show
// them.
type Parser = func() (shown string, err error)

// Text takes one argument as it is.
func Text(d *caddyfile.Dispenser, to *string) Parser {
	return func() (string, error) {
		if !d.AllArgs(to) {
			return "", d.ArgErr()
		}
		return *to, nil
	}
}

// OneText takes one argument as it is. Its error about several says how to write them as one.
func OneText(d *caddyfile.Dispenser, name string, to *string) Parser {
	read := Text(d, to)
	return func() (string, error) {
		if args := d.RemainingArgs(); len(args) > 1 {
			return "", d.Errf("%s takes one text: quote it, as in %s \"%s\"", name, name, strings.Join(args, " "))
		} else if len(args) == 1 {
			d.Prev()
		}
		return read()
	}
}

// NonEmpty takes one argument that is not empty.
func NonEmpty(d *caddyfile.Dispenser, name string, to *string) Parser {
	read := Text(d, to)
	return func() (string, error) {
		shown, err := read()
		if err == nil && *to == "" {
			err = d.Errf("%s is empty", name)
		}
		return shown, err
	}
}

// Texts takes one or more arguments.
func Texts(d *caddyfile.Dispenser, to *[]string) Parser {
	return func() (string, error) {
		if *to = d.RemainingArgs(); len(*to) == 0 {
			return "", d.ArgErr()
		}
		return strings.Join(*to, " "), nil
	}
}

const hidden = "(hidden)"

// Secret takes one argument that errors must not show. They show none if there are several, either.
func Secret(d *caddyfile.Dispenser, name string, to *string) Parser {
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

// Shown returns a text in the form in which errors may show it. It is hidden if it may contain a
// password, as in redis://user:password@host.
func Shown(text string) string {
	if strings.Index(text, "@") > 0 || strings.Contains(text, "://") {
		return hidden
	}
	return text
}

// Parsed takes one argument and parses it with a function.
func Parsed[T any](d *caddyfile.Dispenser, to *T, parse func(string) (T, error)) Parser {
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

// Optional allocates a value that is nil if the option is missing.
func Optional[T any](to **T, parse func(*T) Parser) Parser {
	return func() (string, error) {
		*to = new(T)
		return parse(*to)()
	}
}

// Integer takes one whole number.
func Integer[T int | int64](d *caddyfile.Dispenser, name string, to *T) Parser {
	return Parsed(d, to, func(s string) (T, error) {
		n, wrong := whole[T](s)
		if wrong != "" {
			return 0, fmt.Errorf("%s '%s' %s", name, s, wrong)
		}
		return n, nil
	})
}

// whole returns a whole number, or what is wrong with the text. A number must fit into its type: an int may have 32 bits.
func whole[T int | int64](s string) (n T, wrong string) {
	all, err := strconv.ParseInt(s, 10, 64)
	switch n = T(all); {
	case errors.Is(err, strconv.ErrRange) || int64(n) != all:
		return 0, "is too large"
	case err != nil:
		return 0, "must be a whole number"
	}
	return n, ""
}

// The errors of the parsers below are those of github.com/mholt/caddy-ratelimit, for options that
// it has, too.

// MholtInteger takes one whole number.
func MholtInteger[T int | int64](d *caddyfile.Dispenser, name string, to *T) Parser {
	return Parsed(d, to, func(s string) (T, error) {
		n, wrong := whole[T](s)
		if wrong != "" {
			return 0, fmt.Errorf("invalid %s integer '%s': %s", name, s, wrong)
		}
		return n, nil
	})
}

// Fraction takes one number.
func Fraction(d *caddyfile.Dispenser, what string, to *float64) Parser {
	return Parsed(d, to, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no such numbers
			return 0, fmt.Errorf("%s '%s' must be a number from 0 to 1, such as 0.2", what, s)
		}
		return f, nil
	})
}

// Duration takes one duration.
func Duration(d *caddyfile.Dispenser, what string, to *caddy.Duration) Parser {
	return Parsed(d, to, func(s string) (caddy.Duration, error) {
		v, err := ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("invalid %s '%s': %w", what, s, err)
		}
		return caddy.Duration(v), nil
	})
}

// ParseDuration parses a duration of a config, such as 90s or 1d. The error about a number without a unit
// says what was probably meant.
func ParseDuration(text string) (time.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, notNumber := strconv.ParseUint(text, 10, 32); notNumber == nil {
		return 0, fmt.Errorf("it has no unit; did you mean %ss?", text)
	}
	return 0, err
}

// Boolean takes true, false, or no argument, which means true.
func Boolean(d *caddyfile.Dispenser, name string, to **bool) Parser {
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

// Flag parses true, false, or no argument, which means true. The default of the option is false.
func Flag(d *caddyfile.Dispenser, name string, to *bool) Parser {
	return func() (string, error) {
		var on *bool
		shown, err := Boolean(d, name, &on)()
		*to = on != nil && *on
		return shown, err
	}
}
