package cli_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestCommandFleet: commands ask several instances: they add up counts, show answers that differ, carry
// out changes everywhere, and name a Caddy that does not answer.
func TestCommandFleet(t *testing.T) {
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
		{"zones", []string{"own     sliding_window_log 3/1h with overrides    {query.k}  memory", "memory ", "  4        2        33.3 %\n", "  4        0        0.0 %\n", "Counted by 2 instances.\n"}},
		{"zones own", []string{"caddy           all\n", "allowed         4\n", "refused         2 (2 limited)\n"}},
		{"top own", []string{"own   6         2        0        x\n", "Counted by 2 instances since "}},
		{"get own x", []string{
			"CADDY", "\nA ", "limited  3 of 3  0 ", "\nB ", "allowed  1 of 3  2 ", "6 requests, 2 refused (counted by 2 instances since ",
			"On A: Zone own is refusing this key: 3 of 3 used.", " rate-limit reset --address A,B own x\n",
		}},
		{"get shared x", []string{"used     4 of 100\n", "4 requests, 0 refused (counted by 2 instances since ", "\nZone shared allows this key.\n"}},
		{"get x", []string{"all ", "shared  allowed  4 of 100  96 ", "own     limited  3 of 3    0 ", "own     allowed  1 of 3    2 ", "On A: Zone own is refusing this key"}},
		{"stores", []string{"CADDY", "\nA ", "\nB ", "  memory ", "  redis "}},
		{"reset own x", []string{"A ", "  done\n", "B "}},
		{"ban own x", []string{"  done\n", "  banned  1 of 3 ", "\nZone own is refusing this key: an operator has banned it until it is unbanned.\n", " unban --address A,B own x\n"}},
		{"bans", []string{"all    own   operator  when unbanned  x\n"}},
		{"unban own x", []string{"  done\n", "  allowed  1 of 3 "}},
		{"set own x 9/1h", []string{"override  sliding_window_log 9/1h until it is cleared\n"}},
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
	if output, code := run("set own y 5/1h", address(b)); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if output, _ := run("overrides own", both); !strings.Contains(output, "\nall ") || !strings.Contains(output, "\nB ") {
		t.Errorf("want one override on both and one on B:\n%s", output)
	}

	for line, want := range map[string]string{
		"zones": "own ", "top own": "x\n", "get own x": "allowed", "get x": "allowed", "stores": "memory", "reset own z": " failed\n", "overrides": "9/1h",
	} {
		output, code := run(line, both+",unix//gone")
		if code != 1 || !strings.Contains(output, want) || !strings.Contains(output, "Error: 1 of 3 instances failed:\n  unix//gone: dial unix /gone: ") {
			t.Errorf("%s: exit code %d, want %q in\n%s", line, code, want, output)
		}
	}
	if output, _ := run("zones --fleet=false --address "+address(a), address(a)); !strings.Contains(output, "Counted by this instance.") {
		t.Errorf("a Caddy that is named twice is counted twice:\n%s", output)
	}
	for line, want := range map[string]string{
		"explain http://example.com/": "caddy rate-limit explain asks one instance: give one --address, got 2",
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

	for _, form := range []string{"", " --json"} {
		of := func(name, seen string) bool {
			line := "  " + name + "  "
			if form != "" {
				line = `{"address":"` + name + `","answer":{"time":`
			}
			return strings.Contains(strings.ReplaceAll(seen, name+" ", name+"  "), line)
		}
		// The first stream may bring all of the decisions before the other one is open.
		patient.Until(t, "decisions of both instances", func() bool {
			watch := exec.CommandContext(t.Context(), "bash", "-c", `exec "$CADDY" rate-limit watch own -n 20 --rate 1000`+form+` --address `+both)
			watch.Dir, watch.Env = a.Dir, append(harness.Environment(a.Dir), "CADDY="+harness.CommandBinary(t))
			ended := make(chan string, 1)
			go func() {
				output, err := watch.CombinedOutput()
				if err != nil {
					t.Error(err)
				}
				ended <- names.Replace(string(output))
			}()
			seen := ""
			patient.Until(t, "watch to end", func() bool {
				a.Get(client, "/?k=w")
				b.Get(client, "/?k=w")
				select {
				case seen = <-ended:
					return true
				default:
					return false
				}
			})
			if strings.Count(seen, "\n") < 20 {
				t.Fatalf("fewer than 20 decisions:\n%s", seen)
			}
			return of("A", seen) && of("B", seen)
		})
	}
}
