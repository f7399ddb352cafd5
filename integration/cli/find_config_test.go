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
}

// TestGetInWords: `get` asks nothing that Caddy logs as an error, says that an address is no key of a zone that
// tells clients apart by something else, and `set` says that no request has had the key.
func TestGetInWords(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone checkout {
				key {cookie.sid}
				rate 5/1m
				overrides
			}
			zone clients {
				key {client_ip}
				rate 9/1m
			}
		}
		respond ok`))
	s.Get(harness.NewClient(t, ""), "/", "Cookie", "sid=alice")
	for _, c := range []struct {
		args   []string
		has    string
		hasNot string
	}{
		{[]string{"get", "203.0.113.7"}, "Zone checkout: the key is {cookie.sid}, and no request had the value 203.0.113.7 lately", "Zone clients:"},
		{[]string{"get", "alice"}, "alice", "no request had"},
		{[]string{"set", "checkout", "alcie", "9/1m"}, "No request had this key lately.", "error"},
		{[]string{"set", "checkout", "alice", "9/1m"}, "override", "No request had this key lately."},
	} {
		output, err := s.RateLimit(c.args...)
		if err != nil || !strings.Contains(output, c.has) || strings.Contains(output, c.hasNot) {
			t.Errorf("%v: %v, want %q and not %q in\n%s", c.args, err, c.has, c.hasNot, output)
		}
	}
	if log := string(s.Log()); strings.Contains(log, `"level":"error"`) {
		t.Errorf("Caddy has logged an error:\n%s", log)
	}
}
