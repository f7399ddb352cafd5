package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.yaml.in/yaml/v3"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// fence matches a config in a page.
var fence = regexp.MustCompile("(?ms)^```(caddyfile|json)\n(.*?)^```$")

// TestConfigsInTheDocs loads every Caddyfile and every handler in JSON of the README and the docs. A Caddyfile that somebody copies,
// also from the examples, is as "caddy fmt" would write it, so Caddy does not warn.
func TestConfigsInTheDocs(t *testing.T) {
	formatted := func(place, config string) {
		if want := strings.TrimSpace(string(caddyfile.Format([]byte(config)))); want != strings.TrimSpace(config) {
			t.Errorf("%s:\n%s\nwould be formatted as\n%s", place, config, want)
		}
	}
	found := 0
	for _, page := range append(docPages(t), "README.md") {
		for i, match := range fence.FindAllStringSubmatch(read(t, page), -1) {
			found++
			var config []byte
			var err error
			if strings.Contains(match[2], `"apps"`) {
				config = []byte(match[2])
			} else if match[1] == "json" {
				config = caddytest.ConfigOf(match[2])
			} else if config, _, err = caddytest.Adapt(match[2]); err != nil {
				t.Errorf("%s, config %d: adapting: %v\n%s", page, i+1, err, match[2])
				continue
			}
			if match[1] == "caddyfile" {
				formatted(page, match[2])
			}
			if got := caddytest.ValidateJSON(t, config); got != "ok" {
				t.Errorf("%s, config %d: %s\n%s", page, i+1, got, match[2])
			}
		}
	}
	files, err := filepath.Glob("examples/*/*/Caddyfile")
	if err != nil || len(files) == 0 || found < 3 {
		t.Fatal(found, files, err)
	}
	for _, file := range append(files, "examples/compose/Caddyfile") {
		formatted(file, read(t, file))
	}
}

// TestExampleConfigs loads the config of each example.
func TestExampleConfigs(t *testing.T) {
	var configMap struct {
		Data map[string]string
	}
	if err := yaml.Unmarshal([]byte(read(t, "examples/kubernetes/configmap.yaml")), &configMap); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"compose":    read(t, "examples/compose/Caddyfile"),
		"systemd":    read(t, "examples/systemd/Caddyfile"),
		"kubernetes": configMap.Data["Caddyfile"],
	} {
		for _, variable := range regexp.MustCompile(`\{env\.(\w+)\}`).FindAllStringSubmatch(text, -1) {
			t.Setenv(variable[1], "redis.internal")
		}
		config, warnings, err := caddytest.Adapt(text)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
		} else if got := caddytest.ValidateJSON(t, config); got != "ok" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestExampleVariables: each variable of an example's config is set where the example is started.
func TestExampleVariables(t *testing.T) {
	for config, sets := range map[string]string{
		"examples/compose/Caddyfile":         "examples/compose/compose.yaml",
		"examples/systemd/Caddyfile":         "examples/systemd/caddy.env",
		"examples/kubernetes/configmap.yaml": "examples/kubernetes/deployment.yaml",
	} {
		variables := regexp.MustCompile(`\{env\.(\w+)\}`).FindAllStringSubmatch(read(t, config), -1)
		if len(variables) < 2 {
			t.Errorf("%s has only %d variables", config, len(variables))
		}
		for _, variable := range variables {
			if !strings.Contains(read(t, sets), variable[1]) {
				t.Errorf("%s does not set %s", sets, variable[1])
			}
		}
	}
}

// TestDeployedRights: the Redis of the containers grants the rights that docs/redis.md lists.
func TestDeployedRights(t *testing.T) {
	_, rights, _ := strings.Cut(read(t, "examples/compose/redis.conf"), "\n# limiter ")
	if rights == "" || !strings.Contains(read(t, "docs/redis.md"), "\nuser limiter on >password "+rights) {
		t.Errorf("docs/redis.md does not have these rights: %q", rights)
	}
	for _, more := range []string{"With `+info`, ", "With `+scan`, "} {
		if !strings.Contains(read(t, "docs/redis.md"), more) || !strings.Contains(read(t, "examples/compose/redis.conf"), strings.Trim(more, "With`, ")) {
			t.Errorf("docs/redis.md and the example do not both tell what comes %s", more)
		}
	}
}

// TestRemovedOptions: a config with an option that was removed says so, in the Caddyfile and in JSON. TestBlock in option has that of
// any block.
func TestRemovedOptions(t *testing.T) {
	for name, instead := range option.Removed {
		want := `"` + name + `" was removed: ` + instead + " (docs/compatibility.md#removed)"
		if _, _, err := caddytest.Adapt(":80 {\nrate_limit {\nzone app {\nrate 1/1s\n" + name + " x\n}\n}\n}\n"); err == nil || !strings.Contains(err.Error(), "zone app: "+want) {
			t.Errorf("Caddyfile: got %v, want %s", err, want)
		}
		_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {"app": {"max_events": 1, "window": "1s", "`+name+`": "x"}}}`)
		if err == nil || !strings.Contains(err.Error(), `zone "app": `+want) {
			t.Errorf("JSON: got %v, want %s", err, want)
		}
	}
}
