package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestSeveralAddresses: commands ask one instance after the other, show each answer below its address, carry out changes
// everywhere, and name a Caddy that does not answer.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	config := harness.Caddyfile("", `
		rate_limit {
			zone own {
				key {query.k}
				events 3
				window 1h
				overrides
			}
			`+harness.Memory+`
		}
		rate_limit {
			zone shared {
				key {query.k}
				events 100
				window 1h
				overrides
			}
			`+harness.Redis(redisServer.Addr())+`
		}
		respond ok`)
	a, b := harness.StartCaddy(t, config), harness.StartCaddy(t, config)
	client := harness.NewClient(t, "")
	a.Admitted(client, 5, "/?k=x")
	b.Admitted(client, 1, "/?k=x")
	address := func(s *harness.Server) string { return "unix/" + filepath.Join(s.Dir, "admin") }
	both := address(a) + "," + address(b)
	names := strings.NewReplacer(address(a), "A", address(b), "B")
	run := func(line, addresses string) (string, int) {
		t.Helper()
		output, err := a.Shell(`"$CADDY" rate-limit ` + line + ` --address ` + addresses + ` 2>&1`)
		if err == nil {
			return names.Replace(output), 0
		}
		exit, ok := asExit(err)
		if !ok {
			t.Fatalf("%s: %v", line, err)
		}
		return names.Replace(output), exit.ExitCode()
	}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"zones", []string{"caddy A\n\nZONE ", "  3        2        40.0 %\n", "Counted by this instance.\n\ncaddy B\n\nZONE ", "  1        0        0.0 %\n"}},
		{"zones own", []string{"refused         2 (2 limited)\n", "refused         0\n"}},
		{"top own", []string{"own   5         2        0        x\n", "own   1         0        0        x\n"}},
		{"get own x", []string{
			"caddy A\n\nzone ", "state    limited\n", "Zone own is refusing this key: 3 of 3 used.", " rate-limit reset --address A own x\n",
			"\n\ncaddy B\n\nzone ", "state    allowed\n",
		}},
		{"get x", []string{"shared  allowed  4 of 100  96 ", "own     limited  3 of 3    0 ", "own     allowed  1 of 3    2 "}},
		{"stores", []string{"caddy A\n\nSTORE ", "caddy B\n\nSTORE ", "\nmemory ", "\nredis "}},
		{"reset own x", []string{"caddy A: done\n", "caddy B: done\n"}},
		{"ban own x", []string{"caddy A: done\n", "caddy B: done\n"}},
		{"bans own", []string{"caddy A\n\nZONE  BY        ENDS           KEY\nown   operator  when unbanned  x\n\ncaddy B\n\nZONE "}},
		{"unban own x", []string{"caddy A: done\n", "caddy B: done\n"}},
		{"unban own x", []string{"Warning: A: it was not banned\n", "Warning: B: it was not banned\n", "caddy A: nothing has changed\n"}},
		{"set own x 9/1h", []string{"caddy A: done\n", "caddy B: done\n"}},
	} {
		output, code := run(c.line, both)
		for _, want := range c.want {
			if code != 0 || !strings.Contains(output, want) {
				t.Errorf("%s: exit code %d, want %q in\n%s", c.line, code, want, output)
			}
		}
		if c.line == "reset own x" && (a.Admitted(client, 1, "/?k=x") != 1 || strings.Count(output, "done") != 2) {
			t.Errorf("not reset everywhere:\n%s", output)
		}
	}
	if output, code := run("overrides", address(b)); code != 0 || !strings.Contains(output, "own   sliding_window_log 9/1h until it is cleared  x\n") {
		t.Errorf("exit code %d:\n%s", code, output)
	}

	for line, want := range map[string]string{
		"zones": "own ", "top own": "x\n", "get own x": "allowed", "get x": "allowed", "stores": "memory", "reset own z": "caddy unix//gone: no answer\n", "overrides": "9/1h",
	} {
		output, code := run(line, both+",unix//gone")
		if code != 1 || !strings.Contains(output, want) || !strings.Contains(output, "Error: 1 of 3 instances failed:\n  unix//gone: dial unix /gone: ") {
			t.Errorf("%s: exit code %d, want %q in\n%s", line, code, want, output)
		}
	}
	if output, _ := run("zones --fleet=false --address "+address(a), address(a)); strings.Contains(output, "caddy A") {
		t.Errorf("a Caddy that is named twice is asked twice:\n%s", output)
	}
	for line, want := range map[string]string{
		"explain http://example.com/": "caddy rate-limit explain asks one instance: give one --address, got 2",
		"watch":                       "caddy rate-limit watch asks one instance: give one --address, got 2",
		"get nowhere x":               "Error: 2 of 2 instances failed:\n  A: no zone \"nowhere\"",
	} {
		if output, code := run(line, both); code != 1 || !strings.Contains(output, want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", line, code, want, output)
		}
	}

	type element struct {
		Address string          `json:"address"`
		Answer  json.RawMessage `json:"answer"`
		Error   string          `json:"error"`
	}
	for _, line := range []string{"zones", "zones own", "top", "top own", "get own x", "get x", "stores", "bans", "set own x --clear", "reset own x"} {
		output, err := a.Shell(`"$CADDY" rate-limit ` + line + ` --json --address ` + both + `,unix//gone 2>/dev/null || test $? = 1`)
		var list []element
		if err == nil {
			err = json.Unmarshal([]byte(output), &list)
		}
		if err != nil || len(list) != 3 || list[0].Address != address(a) || list[2].Error == "" || list[1].Error != "" || list[1].Answer == nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
}
