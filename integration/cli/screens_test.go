package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// goldenScreens has what people see in a terminal.
const goldenScreens = "testdata/screens.txtar"

// TestGoldenScreens: what an operator sees in a terminal of 80 columns, from the list of the zones to
// the command that lets a client through.
func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				key {client_ip}
				events 100
				window 1h
			}
			zone logins {
				match path /login
				key "{client_ip} {header.User}"
				events 3
				window 1h
				ban 2h after 10 refusals in 10m
			}
			zone api {
				key {header.X-Api-Key}
				plan {header.Plan} {
					free    60/1h
					pro     token_bucket 6000/1h burst 100
					staff   unlimited
					default reject
				}
				missing_key skip
			}
		}
		respond ok`))
	if got := s.Admitted(harness.NewClient(t, ""), 4, "/login", "X-Forwarded-For", "203.0.113.7", "User", "alice b", "X-Api-Key", "k", "Plan", "free"); got != 3 {
		t.Fatalf("%d of 4 admitted, want 3", got)
	}
	var screens strings.Builder
	for _, args := range []string{
		"zones", "top", "top --refused", "get 203.0.113.7", "get logins 203.0.113.7 alice+b", "get api k",
		"explain -H X-Forwarded-For:203.0.113.7 -H User:alice+b -H Plan:staff http://example.com/login",
		"explain -X POST http://example.com/",
	} {
		cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), append([]string{"rate-limit"}, strings.Fields(args)...)...)
		for i := range cmd.Args {
			cmd.Args[i] = strings.ReplaceAll(cmd.Args[i], "+", " ")
		}
		cmd.Args = append(cmd.Args, "--address", "unix/"+filepath.Join(s.Dir, "admin"))
		cmd.Env = append(harness.Environment(s.Dir), "COLUMNS=80")
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args, err, output)
		}
		table, _, _ := bytes.Cut(output, []byte("\n\n"))
		for line := range strings.Lines(string(table)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && !strings.HasPrefix(args, "get logins") && !strings.HasPrefix(args, "get api") {
				t.Errorf("%s: a line of %d columns: %s", args, n, line)
			}
		}
		screens.WriteString(withoutTimes("$ caddy rate-limit " + args + "\n" + string(output) + "\n"))
	}
	golden.Open(t, goldenScreens, "commands").Check(t, screens.String())
}

// changing is what differs in each run.
var changing = regexp.MustCompile(`unix/\S+|/\S+/(command|caddy)\b|\d\d:\d\d:\d\d|\b(\d+m)?\d+(\.\d)?s\b|\b1[mh]\b`)

// rate is how many requests came in a second of the last minute, which is 0 unless the machine is slow.
var rate = regexp.MustCompile(`\d+\.\d+/s`)

// withoutTimes returns a screen without times and rates, and without the widths of columns, which depend on them.
func withoutTimes(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		b.WriteString(strings.Join(strings.Fields(changing.ReplaceAllString(rate.ReplaceAllString(line, "0.00/s"), "*")), " ") + "\n")
	}
	return b.String()
}

// TestCommandAdminOff: a config without an admin endpoint is named as the reason.
func TestCommandAdminOff(t *testing.T) {
	t.Parallel()
	dir := harness.ShortDir(t)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte("{\nadmin off\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), "rate-limit", "zones", "--config", file)
	cmd.Dir, cmd.Env = dir, harness.Environment(dir)
	if output, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(output), "the config has the option admin off") {
		t.Errorf("%v\n%s", err, output)
	}
}
