package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

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
