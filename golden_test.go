package caddyratelimit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// secrets are in every secret of the golden cases. No result may have one.
var secrets = []string{"s3cr3t", "hunter2"}

// TestGoldenAdapt: the Caddyfiles of testdata/adapt have this JSON, and it loads.
func TestGoldenAdapt(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			config, warnings, err := caddytest.Adapt(g.Input)
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range warnings {
				t.Errorf("warning: %s", warning)
			}
			var all any
			if err := json.Unmarshal(config, &all); err != nil {
				t.Fatal(err)
			}
			g.Check(t, pretty(withoutFrame(all), ""))
			if !strings.Contains(g.Input, " /etc/") { // it names files that do not exist here
				if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
					t.Errorf("%s does not load: %s", g, got)
				}
			}
		})
	}
}

// withoutFrame returns the handler of a config that has nothing else, or the config.
func withoutFrame(config any) any {
	var handlers []map[string]any
	eachHandler(config, func(h map[string]any) { handlers = append(handlers, h) })
	if len(handlers) != 1 {
		return config
	}
	handler, err := json.Marshal(handlers[0])
	var again any
	if err == nil {
		err = json.Unmarshal([]byte(strings.Replace(string(caddytest.ConfigOf(string(handler))), ":8080", ":80", 1)), &again)
	}
	if err == nil && reflect.DeepEqual(again, config) {
		return handlers[0]
	}
	return config
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

// pretty is JSON with as much on a line as fits.
func pretty(value any, indent string) string {
	line, err := json.Marshal(value)
	if err != nil || len(line) <= 100 {
		return string(line)
	}
	var parts []string
	inner, open, end := indent+"\t", "[", "]"
	switch value := value.(type) {
	case map[string]any:
		open, end = "{", "}"
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, inner+strconv.Quote(name)+": "+pretty(value[name], inner))
		}
	case []any:
		for _, v := range value {
			parts = append(parts, inner+pretty(v, inner))
		}
	default:
		return string(line)
	}
	return open + "\n" + strings.Join(parts, ",\n") + "\n" + indent + end
}

// TestGoldenConfigs: the configs of the table do not load, with this error, or load with these warnings. No result has a
// secret.
func TestGoldenConfigs(t *testing.T) {
	for _, c := range caddytest.ConfigCases(t, "") {
		got := c.Result(t)
		c.Check(t, got)
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%s: the error has a secret: %s", c.Name, got)
			}
		}
	}
}
