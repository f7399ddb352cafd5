package caddyratelimit_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestDeployedCaddyfile loads the config of the containers.
func TestDeployedCaddyfile(t *testing.T) {
	text, err := os.ReadFile("deploy/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	config, warnings, err := caddytest.Adapt(string(text))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if got := caddytest.ValidateJSON(t, config); got != "ok" {
		t.Error(got)
	}
}

// TestComposeFile: the files and the services that compose.yaml names exist.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Build     string
			Image     string
			Volumes   []string
			DependsOn []string `yaml:"depends_on"`
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	if got := len(compose.Services); got != 3 {
		t.Errorf("%d services, want 3: two Caddys and a Redis", got)
	}
	for name, service := range compose.Services {
		if service.Image == "" {
			t.Errorf("%s has no image", name)
		}
		if service.Build != "" {
			if _, err := os.Stat(service.Build + "/Dockerfile"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(service.Volumes) == 0 {
			t.Errorf("%s has no config", name)
		}
		for _, volume := range service.Volumes {
			file, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, other := range service.DependsOn {
			if _, ok := compose.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is not a service", name, other)
			}
		}
	}
}

// TestDeployedRights: the Redis of the containers grants the rights that docs/redis.md lists.
func TestDeployedRights(t *testing.T) {
	page, err := os.ReadFile("docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile("deploy/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, rights, _ := strings.Cut(string(conf), "\n# limiter ")
	if rights == "" || !strings.Contains(string(page), "\nuser limiter on >password "+rights) {
		t.Errorf("docs/redis.md does not have these rights: %q", rights)
	}
}
