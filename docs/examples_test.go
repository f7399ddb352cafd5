package docs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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

// TestComposeFile: the files and the services that compose.yaml names exist. Neither it nor the Service of Kubernetes
// publishes the port of the metrics.
func TestComposeFile(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Build     string
			Image     string
			Volumes   []string
			Ports     []string
			DependsOn []string `yaml:"depends_on"`
		}
	}
	const dir = "examples/compose"
	if err := yaml.Unmarshal([]byte(read(t, dir+"/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	if got := len(compose.Services); got != 5 {
		t.Errorf("%d services, want 5: two instances, Redis, Prometheus and Grafana", got)
	}
	for name, service := range compose.Services {
		if service.Image == "" {
			t.Errorf("%s has no image", name)
		}
		if service.Build != "" {
			if _, err := os.Stat(filepath.Join(dir, service.Build, "Dockerfile")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(service.Volumes) == 0 {
			t.Errorf("%s has no config", name)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") || strings.Contains(port, "2019") || strings.Contains(port, "2020") {
				t.Errorf("%s publishes %s, want the ports for clients, on this machine alone", name, port)
			}
		}
		for _, volume := range service.Volumes {
			file, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, other := range service.DependsOn {
			if _, ok := compose.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is not a service", name, other)
			}
		}
	}
	if text := read(t, "examples/kubernetes/service.yaml"); !strings.HasSuffix(text, "  ports:\n    - name: http\n      port: 80\n      targetPort: http\n") {
		t.Errorf("the service of Kubernetes publishes more than the port for clients:\n%s", text)
	}
	for _, target := range regexp.MustCompile(`"(\w+):2020"`).FindAllStringSubmatch(read(t, dir+"/prometheus.yml"), -1) {
		if _, ok := compose.Services[target[1]]; !ok {
			t.Errorf("prometheus.yml has the target %s, which is not a service", target[1])
		}
	}
}

// TestYAMLFiles: all YAML in the repository can be read, and no file has a key twice.
func TestYAMLFiles(t *testing.T) {
	found := 0
	for _, pattern := range []string{"examples/*/*.y*ml", "examples/*/*/*/*/*.y*ml", ".github/*.yml", ".github/*/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			found++
			documents := yaml.NewDecoder(bytes.NewReader([]byte(read(t, file))))
			for {
				var value any
				if err := documents.Decode(&value); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", file, err)
					break
				}
			}
		}
	}
	if found < 14 {
		t.Errorf("found only %d files", found)
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
