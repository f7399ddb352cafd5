//go:build deep

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestCommandLine: Caddy's own commands work with the module.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	path, dir := harness.CommandBinary(t), harness.ShortDir(t)
	file := filepath.Join(dir, "Caddyfile")
	config := harness.Caddyfile("", `
		rate_limit {
			zone clients {
				key {client_ip}
				algorithm token_bucket 100/m
			}
			store redis {
				address 127.0.0.1:`+strconv.Itoa(redistest.FreePort(t))+`
			}
		}
		respond ok`)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.Env = dir, harness.Environment(dir)
		output, err := cmd.CombinedOutput()
		return string(output), err
	}

	t.Run("list-modules", func(t *testing.T) {
		output, err := command("list-modules")
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		for _, module := range []string{
			"rate_limit", "http.handlers.rate_limit", "http.rate_limit.stores.memory", "http.rate_limit.stores.redis",
		} {
			if !strings.Contains("\n"+output, "\n"+module+"\n") {
				t.Errorf("no module %s", module)
			}
		}
	})
	t.Run("help", func(t *testing.T) {
		const foot = "Full documentation is available at:\nhttps://github.com/seed-161337e5/caddyratelimit/blob/main/docs/cli.md\n"
		for _, args := range [][]string{{"rate-limit", "--help"}, {"rate-limit", "stores", "--help"}} {
			if output, err := command(args...); err != nil || !strings.HasSuffix(output, "\n\n"+foot) || strings.Count(output, "Full documentation") != 1 {
				t.Errorf("%v: %v\n%s", args, err, output)
			}
		}
	})
	t.Run("validate", func(t *testing.T) {
		// Redis is down, but the config is valid.
		if output, err := command("validate", "--config", file); err != nil || !strings.Contains(output, "Valid configuration") {
			t.Errorf("%v\n%s", err, output)
		}
		wrong := filepath.Join(dir, "wrong")
		text := strings.Replace(config, "{client_ip}", "{http.request.remote_ip}", 1)
		if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := command("validate", "--config", wrong, "--adapter", "caddyfile")
		if err == nil || !strings.Contains(output, "{http.vars.client_ip}") {
			t.Errorf("error %v, want one that names {http.vars.client_ip}\n%s", err, output)
		}
	})
}
