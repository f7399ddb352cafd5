package caddytest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// separator is between a config and its result.
const separator = "\n----------\n"

// Golden is a golden case: a config, a line of ten hyphens, and the result.
type Golden struct {
	golden.Case
	Input, Want string
}

// Goldens reads the cases of the archives that match a pattern.
func Goldens(t testing.TB, pattern string) (all []Golden) {
	t.Helper()
	for _, c := range golden.Cases(t, pattern) {
		input, want, found := strings.Cut(c.Text, separator)
		if !found && !golden.Updating() {
			t.Errorf("%s: no line of ten hyphens", c)
		}
		all = append(all, Golden{c, strings.TrimSuffix(input, "\n") + "\n", strings.TrimSpace(want)})
	}
	return all
}

// JSON returns a result that is a config, or a handler of one.
func (g Golden) JSON() []byte {
	var is struct{ Handler string }
	if err := json.Unmarshal([]byte(g.Want), &is); err == nil && is.Handler != "" {
		return ConfigOf(g.Want)
	}
	return []byte(g.Want)
}

// Check compares the result.
func (g Golden) Check(t testing.TB, got string) {
	t.Helper()
	if got != g.Want {
		g.Case.Check(t, g.Input[:len(g.Input)-1]+separator+got+"\n")
	}
}

// Configs is the table of configs that do not load, or have warnings. A line has a kind and a config, and the line after it
// has "=> " and the result: see [Config.Result].
//
//	zone: key a b
//	=> key takes one text: quote it, as in key "a b", at Caddyfile:4
const Configs = "testdata/configs.txt"

// ConfigCase is a case of [Configs]. In Caddyfiles, "; " is the end of a line.
type ConfigCase struct{ Name, Kind, Text, Want string }

// around is what is around the text of each kind of config. The zone of options is a valid one.
var around = map[string]string{
	"site":       "?",
	"rate_limit": ":80 {; rate_limit {; ?; }; }", "options": ":80 {; rate_limit {; ?; zone clients {; key {client_ip}; rate 10/1m; }; }; }",
	"zone":      ":80 {; rate_limit {; zone clients {; ?; }; }; }",
	"adaptive":  "localhost {; adaptive_concurrency {; ?; }; }",
	"json":      "?",
	"json zone": `{"handler": "rate_limit", "rate_limits": {"clients": {?}}}`, "json options": `{"handler": "rate_limit", "rate_limits": {"clients": {"max_events": 10, "window": "1m"}}, ?}`,
}

// ConfigCases reads [Configs] in a folder.
func ConfigCases(t testing.TB, root string) (all []ConfigCase) {
	t.Helper()
	text, err := os.ReadFile(root + Configs)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if want, ok := strings.CutPrefix(line, "=> "); ok && len(all) > 0 {
			all[len(all)-1].Want = strings.TrimSpace(want)
		} else if kind, text, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			if around[kind] == "" {
				t.Fatalf("%s:%d: unknown kind %q", Configs, number, kind)
			}
			all = append(all, ConfigCase{fmt.Sprintf("%s:%d", Configs, number), kind, strings.TrimSpace(text), ""})
		}
	}
	return all
}

// JSON returns the config, or the error of the Caddyfile adapter.
func (c ConfigCase) JSON() ([]byte, error) {
	text := strings.Replace(around[c.Kind], "?", c.Text, 1)
	if strings.HasPrefix(c.Kind, "json") {
		return ConfigOf(text), nil
	}
	config, _, err := Adapt(strings.ReplaceAll(text, "; ", "\n") + "\n")
	return config, err
}

// What Caddy writes before an error.
var (
	parsing = regexp.MustCompile(`^parsing caddyfile tokens for '\w+': `)
	loading = regexp.MustCompile(`^(?s:.*)loading module '(rate_limit|adaptive_concurrency)': ((provision|decoding module config:) http\.handlers\.\w+: )?`)
)

// Result returns the error of the Caddyfile adapter, the error of loading the config, or ok and the warnings. What Caddy
// writes before each error is left out.
func (c ConfigCase) Result(t testing.TB) string {
	t.Helper()
	config, err := c.JSON()
	if err != nil {
		return strings.ReplaceAll(parsing.ReplaceAllString(err.Error(), ""), "\n", " | ")
	}
	return strings.ReplaceAll(loading.ReplaceAllString(ValidateJSON(t, config), ""), "\n", " | ")
}

// Check compares the result, or writes it while golden.Updating.
func (c ConfigCase) Check(t testing.TB, got string) {
	t.Helper()
	if got == c.Want {
		return
	}
	if !golden.Updating() {
		t.Errorf("%s: %s: %s\n got: %s\nwant: %s", c.Name, c.Kind, c.Text, got, c.Want)
		return
	}
	text, err := os.ReadFile(Configs)
	if err == nil {
		head := c.Kind + ": " + c.Text + "\n"
		without := strings.Replace(string(text), head+"=> "+c.Want+"\n", head, 1)
		err = os.WriteFile(Configs, []byte(strings.Replace(without, head, head+"=> "+got+"\n", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ConfigOf puts a handler in JSON into a config.
func ConfigOf(handler string) []byte {
	return fmt.Appendf(nil, `{"apps":{"http":{"servers":{"srv0":{"listen":[":8080"],"routes":[{"handle":[%s]}]}}}}}`, handler)
}
