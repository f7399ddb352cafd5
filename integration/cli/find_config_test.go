//go:build deep

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestCommandsFindTheConfig: commands find the admin endpoint by the Caddyfile of the working directory, as Caddy's
// own commands do, and log nothing. A Caddyfile that cannot be adapted here does not stop them.
func TestCommandsFindTheConfig(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone z {
				key {client_ip}
				rate 5/1m
			}
		}
		respond ok`))
	site := "{\n\tadmin unix/" + filepath.Join(s.Dir, "admin") + "\n}\n:1 {\n}\n"
	for name, text := range map[string]string{"Caddyfile": site, "named": site, "broken/Caddyfile": "{\n\tadmin {$NOT_SET}\n\tno_such_option\n}\n"} {
		file := filepath.Join(s.Dir, "configs", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		`cd configs && "$CADDY" rate-limit zones 2>&1`,
		`cd / && "$CADDY" rate-limit zones --config "$OLDPWD/configs/Caddyfile" 2>&1`,
		`"$CADDY" rate-limit zones -c configs/named -a caddyfile 2>&1`,
		`cd configs/broken && "$CADDY" rate-limit zones --address unix/"$ADMIN" 2>&1`,
	} {
		output, err := s.Shell(line)
		if err != nil || !strings.HasPrefix(output, "ZONE ") || !strings.Contains(output, "\nz ") {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	output, err := s.Shell(`cd configs/broken && "$CADDY" rate-limit zones 2>&1 || true`)
	if err != nil || !strings.Contains(output, "localhost:2019") || strings.Contains(output, "no_such_option") {
		t.Errorf("%v: a Caddyfile that cannot be adapted: %s", err, output)
	}
	output, err = s.Shell(`"$CADDY" rate-limit zones -c configs/broken/Caddyfile 2>&1 || true`)
	if err != nil || !strings.Contains(output, "no_such_option") {
		t.Errorf("%v: one that was named: %s", err, output)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "configs", "off"), []byte("{\nadmin off\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err = s.Shell(`"$CADDY" rate-limit zones -c configs/off -a caddyfile 2>&1 || true`)
	if err != nil || !strings.Contains(output, "the config has the option admin off") {
		t.Errorf("%v: one without an admin endpoint: %s", err, output)
	}
}
