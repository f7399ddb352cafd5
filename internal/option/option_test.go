package option_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// on returns a parser's dispenser at the name of an option, with its arguments behind it.
func on(line string) *caddyfile.Dispenser {
	d := caddyfile.NewTestDispenser(line)
	d.Next()
	return d
}

// outcome runs a parser, and returns what errors may show of it, or its error.
func outcome(t *testing.T, d *caddyfile.Dispenser, parse option.Parser) string {
	t.Helper()
	shown, err := parse()
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), ", at ")
		return "error: " + text
	}
	if d.NextArg() {
		t.Errorf("the argument %s is left", d.Val())
	}
	return shown
}

// compare runs a parser for each line, and compares what errors may show with the value that it has set.
func compare[T comparable](t *testing.T, parser func(*caddyfile.Dispenser, *T) option.Parser, cases map[string]struct {
	shown string
	value T
},
) {
	t.Helper()
	for line, want := range cases {
		var value T
		d := on(line)
		if got := outcome(t, d, parser(d, &value)); got != want.shown || value != want.value {
			t.Errorf("%s: %q and %v, want %q and %v", line, got, value, want.shown, want.value)
		}
	}
}

// result is what a parser returns and sets.
type result[T any] = struct {
	shown string
	value T
}

const wrongCount = "error: wrong argument count or unexpected line ending after '"

// TestShown: a text that may have a password in it is hidden.
func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "localhost:6379": "localhost:6379", "@": "@", "@a": "@a", "a@": "(hidden)", "user:pw@host": "(hidden)",
		"redis://host": "(hidden)", "://": "(hidden)", "unix//run/redis.sock": "unix//run/redis.sock",
	} {
		if got := option.Shown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestNumbers: numbers are whole and fit, fractions are finite, durations have a unit. What is wrong sets nothing.
func TestNumbers(t *testing.T) {
	compare(t, func(d *caddyfile.Dispenser, to *int64) option.Parser { return option.Integer(d, "o", to) }, map[string]result[int64]{
		"o 0":                    {"0", 0},
		"o -7":                   {"-7", -7},
		"o 9223372036854775807":  {"9223372036854775807", math.MaxInt64},
		"o -9223372036854775808": {"-9223372036854775808", math.MinInt64}, // also where an int has 32 bits
		"o 9223372036854775808":  {"error: o '9223372036854775808' is too large", 0},
		"o 1.0":                  {"error: o '1.0' must be a whole number", 0},
		"o 1k":                   {"error: o '1k' must be a whole number", 0},
		`o ""`:                   {"error: o '' must be a whole number", 0},
		"o":                      {wrongCount + "o'", 0},
	})
	compare(t, func(d *caddyfile.Dispenser, to *int64) option.Parser { return option.MholtInteger(d, "o", to) }, map[string]result[int64]{
		"o 5":                   {"5", 5},
		"o 9223372036854775808": {"error: invalid o integer '9223372036854775808': is too large", 0},
		"o five":                {"error: invalid o integer 'five': must be a whole number", 0},
	})
	compare(t, func(d *caddyfile.Dispenser, to *float64) option.Parser { return option.Fraction(d, "o", to) }, map[string]result[float64]{
		"o 0.25": {"0.25", 0.25},
		"o 1":    {"1", 1},
		"o NaN":  {"error: o 'NaN' must be a number from 0 to 1, such as 0.2", 0},
		"o -Inf": {"error: o '-Inf' must be a number from 0 to 1, such as 0.2", 0},
		"o 1e999": {
			"error: o '1e999' must be a number from 0 to 1, such as 0.2", 0,
		},
		"o 20%": {"error: o '20%' must be a number from 0 to 1, such as 0.2", 0},
	})
	compare(t, func(d *caddyfile.Dispenser, to *caddy.Duration) option.Parser { return option.Duration(d, "o", to) }, map[string]result[caddy.Duration]{
		"o 90s":  {"90s", caddy.Duration(90 * time.Second)},
		"o 1d":   {"1d", caddy.Duration(24 * time.Hour)},
		"o 0":    {"0", 0},
		"o -1ms": {"-1ms", caddy.Duration(-time.Millisecond)},
	})
	for _, text := range []string{"5", "fast", "1w", ""} {
		var value caddy.Duration
		d := on(`o "` + text + `"`)
		if got := outcome(t, d, option.Duration(d, "o", &value)); !strings.HasPrefix(got, "error: invalid o '"+text+"': ") || value != 0 {
			t.Errorf("%q: %s and %v", text, got, value)
		}
	}
}
