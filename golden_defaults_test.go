package caddyratelimit_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// said are values that a Caddyfile says without writing them.
var said = map[string]string{
	"/rate_limits/tokens/cost_request/bytes_per_unit: 1": "bytes",
	"/rate_limits/clients/plan/reject: 403":              "default reject",
	"/store/deny_cache: 0":                               "deny_cache off",
}

// numeral is a number in a Caddyfile, with its unit.
var numeral = regexp.MustCompile(`[0-9][0-9A-Za-z.]*`)

// TestAdaptWritesNoDefaults: the JSON of a Caddyfile has only what the Caddyfile says. A default in it would stay when a
// release changes the default. Truth values are not looked at: all defaults of them are false, which JSON leaves out.
func TestAdaptWritesNoDefaults(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		all := g.Adapted(t)
		written := numbersIn(g.Input)
		eachHandler(all, func(handler map[string]any) {
			eachScalar(handler, "", func(path string, value any) {
				var ok bool
				switch value := value.(type) {
				case float64:
					ok = slices.Contains(written, value)
					path += ": " + strconv.FormatFloat(value, 'f', -1, 64)
				case string:
					ok = strings.Contains(g.Input, value) || strings.Contains(value, "{") // a placeholder has another name here
					path += ": " + value
				default:
					ok = true
				}
				ok = ok || strings.Contains(path, "/client_ip/ranges: ") // other spellings of them
				if word := said[path]; !ok && (word == "" || !strings.Contains(g.Input, word)) {
					t.Errorf("%s: nobody wrote %s", g, path)
				}
			})
		})
	}
}

// numbersIn returns the numbers of a Caddyfile: as they are, in classes of statuses, as sizes, as durations, and in rates.
func numbersIn(text string) (all []float64) {
	for _, word := range numeral.FindAllString(text, -1) {
		if n, err := strconv.ParseFloat(strings.TrimRight(word, "rx"), 64); err == nil {
			all = append(all, n)
		}
		if n, err := humanize.ParseBytes(word); err == nil {
			all = append(all, float64(n))
		}
		if d, err := caddy.ParseDuration(word); err == nil {
			all = append(all, float64(d))
		}
	}
	for _, word := range strings.Fields(text) {
		if _, w, err := limit.ParseRate(word); err == nil {
			all = append(all, float64(w.Duration))
		}
	}
	return all
}

// eachHandler calls f for each rate_limit handler in a config.
func eachHandler(config any, f func(map[string]any)) {
	switch config := config.(type) {
	case map[string]any:
		if config["handler"] == "rate_limit" {
			f(config)
		}
		for _, value := range config {
			eachHandler(value, f)
		}
	case []any:
		for _, value := range config {
			eachHandler(value, f)
		}
	}
}

// eachScalar calls f for each number, text and truth value in a value, with the names of the fields around it.
func eachScalar(value any, path string, f func(path string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			eachScalar(inner, path+"/"+name, f)
		}
	case []any:
		for _, inner := range value {
			eachScalar(inner, path, f)
		}
	default:
		f(path, value)
	}
}
