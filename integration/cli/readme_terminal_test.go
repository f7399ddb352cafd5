//go:build deep

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// recorded is the terminal in the README, and a command in it.
var recorded, prompt = regexp.MustCompile("(?s)(## Who got 429, and why\\?\n\n```console\n)(.*?)```"), regexp.MustCompile(`(?m)^\$ (.*)\n`)

// TestGoldenRecording: the terminal in the README shows what the commands print in a terminal now, but for
// colors.
func TestGoldenRecording(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the command script has other flags here")
	}
	readme := harness.ReadPage(t, "../../README.md")
	s := harness.StartBinary(t, harness.CommandBinary(t), ofReadme(t, readme))
	client := harness.NewClient(t, "")
	for _, traffic := range []struct {
		address, path string
		n, admitted   int
	}{{"203.0.113.7", "/", 142, 100}, {"198.51.100.24", "/", 40, 40}, {"2001:db8::1", "/", 104, 100}} {
		if got := s.Admitted(client, traffic.n, traffic.path, "X-Forwarded-For", traffic.address); got != traffic.admitted {
			t.Fatalf("%s: %d admitted, want %d", traffic.address, got, traffic.admitted)
		}
	}
	bin := filepath.Join(s.Dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.CommandBinary(t), filepath.Join(bin, "caddy")); err != nil {
		t.Fatal(err)
	}
	found := recorded.FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no terminal")
	}
	var colored strings.Builder
	for _, command := range prompt.FindAllStringSubmatch(found[2], -1) {
		cmd := exec.CommandContext(t.Context(), "script", "-qec", command[1], "/dev/null") // gives it a terminal
		cmd.Env = append(harness.Environment(s.Dir), "PATH="+bin+":"+os.Getenv("PATH"), "COLUMNS=80", "TERM=xterm", "CADDY_ADMIN=unix/"+filepath.Join(s.Dir, "admin"))
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command[1], err, output)
		}
		fmt.Fprintf(&colored, "$ %s\n%s", command[1], strings.ReplaceAll(string(output), "\r\n", "\n"))
	}
	recording := strings.NewReplacer("\x1b[31mlimited\x1b[0m", "limited", "\x1b[32mallowed\x1b[0m", "allowed").Replace(colored.String())
	if withoutTimes(found[2]) == withoutTimes(recording) && strings.Count(colored.String(), "\x1b") == 4 {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Errorf("the README has\n%s\nwant (make golden writes it)\n%s", found[2], colored.String())
	} else if err := os.WriteFile("../../README.md", []byte(strings.Replace(readme, found[2], recording, 1)), 0o644); err != nil {
		t.Error(err)
	}
}

// ofReadme returns the first config of the README, behind this test as its proxy. Its limit comes back in hours
// and not in minutes, unless it is recorded, so that time does not matter.
func ofReadme(t *testing.T, readme string) string {
	t.Helper()
	_, config, _ := strings.Cut(readme, "```caddyfile\n")
	config, _, _ = strings.Cut(config, "```")
	if !strings.Contains(config, "/1m") {
		t.Fatalf("the README has another config:\n%s", config)
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		config = strings.ReplaceAll(config, "/1m", "/1h")
	}
	config = strings.Replace(harness.Localize(config, harness.Memory, ""), "reverse_proxy ", "respond ok", 1)
	return strings.Replace(config, "auto_https off\n", "auto_https off\nservers {\ntrusted_proxies static 127.0.0.0/8\n}\n", 1)
}

// changing is what differs in each run, but for rates.
var (
	changing = regexp.MustCompile(`unix/\S+|/\S+/(command|caddy)\b|\d\d:\d\d:\d\d|\b(\d+m)?\d+(\.\d)?s\b|\b1[mh]\b`)
	rate     = regexp.MustCompile(`\d+\.\d+/s`)
)

// withoutTimes returns a screen without times and rates, and without the widths of columns, which depend on them.
func withoutTimes(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		b.WriteString(strings.Join(strings.Fields(changing.ReplaceAllString(rate.ReplaceAllString(line, "0.00/s"), "*")), " ") + "\n")
	}
	return b.String()
}
