package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestGoldenRecording: the terminal in the README shows what the commands print in a terminal now. make
// pictures records and draws it again.
func TestGoldenRecording(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the command script has other flags here")
	}
	readme := readPage(t, "../README.md")
	s := startBinary(t, commandBinary(t), ofReadme(t, readme))
	client := newClient(t, "")
	for _, traffic := range []struct {
		address, path string
		n, admitted   int
	}{{"203.0.113.7", "/", 142, 100}, {"198.51.100.24", "/", 40, 40}, {"2001:db8::1", "/", 104, 100}} {
		if got := s.admitted(client, traffic.n, traffic.path, "X-Forwarded-For", traffic.address); got != traffic.admitted {
			t.Fatalf("%s: %d admitted, want %d", traffic.address, got, traffic.admitted)
		}
	}
	bin := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(commandBinary(t), filepath.Join(bin, "caddy")); err != nil {
		t.Fatal(err)
	}
	var recording strings.Builder
	_, commands, _ := strings.Cut(readme, "## Who got 429, and why?\n\n```sh\n")
	commands, _, _ = strings.Cut(commands, "```")
	for command := range strings.Lines(commands + "caddy rate-limit get 203.0.113.7\n") {
		command = strings.TrimSuffix(command, "\n")
		cmd := exec.CommandContext(t.Context(), "script", "-qec", command, "/dev/null") // gives it a terminal
		cmd.Env = append(environment(s.dir), "PATH="+bin+":"+os.Getenv("PATH"), "COLUMNS=80", "TERM=xterm", "CADDY_ADMIN=unix/"+filepath.Join(s.dir, "admin"))
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}
		fmt.Fprintf(&recording, "$ %s\n%s", command, strings.ReplaceAll(string(output), "\r\n", "\n"))
	}

	golden := "../internal/picture/recording.txt"
	committed, err := os.ReadFile(golden)
	if err == nil && withoutTimes(string(committed)) == withoutTimes(recording.String()) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Errorf("%v, want what %s has (make pictures writes it), got\n%s", err, golden, recording.String())
	} else if err := os.WriteFile(golden, []byte(recording.String()), 0o644); err != nil {
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
	config = strings.Replace(local(config, memory, ""), "reverse_proxy ", "respond ok", 1)
	return strings.Replace(config, "auto_https off\n", "auto_https off\nservers {\ntrusted_proxies static 127.0.0.0/8\n}\n", 1)
}
