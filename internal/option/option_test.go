package option_test

import (
	"errors"
	"math"
	"slices"
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

// TestTexts: each parser of texts takes as many as it says, and shows them, except secrets.
func TestTexts(t *testing.T) {
	compare(t, option.Text, map[string]result[string]{
		"o a":   {"a", "a"},
		`o ""`:  {"", ""},
		"o":     {wrongCount + "o'", ""},
		"o a b": {wrongCount + "a'", "a"},
	})
	compare(t, func(d *caddyfile.Dispenser, to *string) option.Parser { return option.OneText(d, "o", to) }, map[string]result[string]{
		"o a":      {"a", "a"},
		`o "a b"`:  {"a b", "a b"},
		"o":        {wrongCount + "o'", ""},
		"o a b  c": {`error: o takes one text: quote it, as in o "a b c"`, ""},
	})
	compare(t, func(d *caddyfile.Dispenser, to *string) option.Parser { return option.NonEmpty(d, "o", to) }, map[string]result[string]{
		"o a":  {"a", "a"},
		`o ""`: {"error: o is empty", ""},
		"o":    {wrongCount + "o'", ""},
	})
	compare(t, func(d *caddyfile.Dispenser, to *string) option.Parser { return option.Secret(d, "o", to) }, map[string]result[string]{
		"o s3cr3t":       {"(hidden)", "s3cr3t"},
		`o ""`:           {"error: o is empty", ""},
		"o":              {"error: o takes one argument", ""},
		"o s3cr3t other": {"error: o takes one argument", ""},
	})
	var all []string
	for line, want := range map[string]string{"o a": "a", "o a b": "a b", "o": wrongCount + "o'"} {
		d := on(line)
		if got := outcome(t, d, option.Texts(d, &all)); got != want || want[0] != 'e' && strings.Join(all, " ") != want {
			t.Errorf("%s: %q and %q, want %q", line, got, all, want)
		}
	}
}

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

// TestFlags: without an argument an option is on. Only true and false are values.
func TestFlags(t *testing.T) {
	compare(t, func(d *caddyfile.Dispenser, to *bool) option.Parser { return option.Flag(d, "o", to) }, map[string]result[bool]{
		"o":           {"true", true},
		"o true":      {"true", true},
		"o false":     {"false", false},
		"o True":      {"error: invalid o 'True': must be true or false", false},
		"o true true": {"error: invalid o 'true true': must be true or false", false},
		`o ""`:        {"error: invalid o '': must be true or false", false},
	})
	var flag *bool
	d := on("o false")
	if got := outcome(t, d, option.Boolean(d, "o", &flag)); got != "false" || flag == nil || *flag {
		t.Errorf("%s and %v", got, flag)
	}
	d, flag = on("o no"), nil
	if got := outcome(t, d, option.Boolean(d, "o", &flag)); !strings.HasPrefix(got, "error: ") || flag != nil {
		t.Errorf("%s and %v", got, flag)
	}
}

// TestOptional: a value exists once its option is there, with what is parsed.
func TestOptional(t *testing.T) {
	var to *int64
	d := on("o 7")
	parse := option.Optional(&to, func(n *int64) option.Parser { return option.Integer(d, "o", n) })
	if to != nil {
		t.Error("there is a value before the option")
	}
	if got := outcome(t, d, parse); got != "7" || to == nil || *to != 7 {
		t.Errorf("%s and %v", got, to)
	}
}

// block parses the options one (once), many (repeats), secret and old (forbidden).
func block(text string) (one string, many []string, err error) {
	d := on(text)
	var secret, more string
	err = option.Block(d, "thing", "my ", map[string]option.Option{
		"one":    {Parse: option.Text(d, &one)},
		"two":    {Parse: option.Text(d, &more), Label: "second"},
		"secret": {Parse: option.Secret(d, "secret", &secret)},
		"old":    {Forbidden: "write one instead"},
		"many": {Repeats: true, Parse: func() (string, error) {
			shown, err := option.Text(d, &more)()
			many = append(many, more)
			return shown, err
		}},
	})
	return one, many, err
}

// TestBlock: options come once, except those that repeat. Unknown ones are told with what is near, and no error
// shows a secret.
func TestBlock(t *testing.T) {
	one, many, err := block("thing {\n\tone 1\n\tmany a\n\tmany b\n\tsecret x\n}")
	if err != nil || one != "1" || !slices.Equal(many, []string{"a", "b"}) {
		t.Errorf("%q, %q, %v", one, many, err)
	}
	for _, empty := range []string{"thing", "thing {\n}"} {
		if one, many, err := block(empty); one != "" || many != nil || err != nil {
			t.Errorf("%q, %q, %v", one, many, err)
		}
	}
	for text, want := range map[string]string{
		"one 1\n\tone 2":                "my one already specified: 1",
		"two 1\n\ttwo 2":                "my second already specified: 1",
		"secret s3cr3t\n\tsecret other": "my secret already specified: (hidden)",
		"secret s3cr3t other":           "secret takes one argument",
		"old":                           "write one instead",
		"sercet s3cr3t":                 "unknown option of thing: 'sercet' (did you mean 'secret'?), must be one of many, one, secret, two",
		"redis://me:s3cr3t@host":        "unknown option of thing: '(hidden)', must be one of many, one, secret, two",
		"one":                           "wrong argument count or unexpected line ending after 'one'",
	} {
		_, _, err := block("thing {\n\t" + text + "\n}")
		if err == nil || !strings.HasPrefix(err.Error(), want+", at ") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOpening: an option that takes a block takes nothing else, and whether there is one is seen without taking it.
func TestOpening(t *testing.T) {
	if err := option.OnlyBlock(on("o {\n}"), "o"); err != nil {
		t.Error(err)
	}
	if err := option.OnlyBlock(on("o s3cr3t {\n}"), "o"); err == nil || !strings.HasPrefix(err.Error(), "o takes its options in a block") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("with an argument: %v", err)
	}
	for text, want := range map[string]bool{"o {\n}": true, "o": false, "o a": false, "o\nb": false} {
		d := on(text)
		if got := option.OpensBlock(d); got != want || d.Val() != "o" {
			t.Errorf("%q: %v at %q, want %v", text, got, d.Val(), want)
		}
	}
	if got := option.Accepted(map[string]option.Option{"b": {}, "a": {}, "c": {Forbidden: "no"}}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("accepted are %q", got)
	}
}

// TestParsed: an error of the function is one at the line, and the value stays as it was.
func TestParsed(t *testing.T) {
	value, failed := 7, errors.New("no such number")
	d := on("o x")
	_, err := option.Parsed(d, &value, func(string) (int, error) { return 1, failed })()
	if !errors.Is(err, failed) || value != 7 || !strings.Contains(err.Error(), ":1") {
		t.Errorf("%v and %d", err, value)
	}
}
