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
	s := startBinary(t, commandBinary(t), caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				key  {client_ip}
				rate 100/1h
			}
			zone logins {
				match path /login
				key   {client_ip}
				rate  5/1h
			}
		}
		respond ok`))
	client := newClient(t, "")
	for _, traffic := range []struct {
		address, path string
		n, admitted   int
	}{{"203.0.113.7", "/", 142, 100}, {"198.51.100.24", "/", 40, 40}, {"2001:db8::1", "/login", 9, 5}} {
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
	for _, command := range []string{
		"caddy rate-limit top --refused",
		"caddy rate-limit get 203.0.113.7",
		"caddy rate-limit reset clients 203.0.113.7",
		"caddy rate-limit get 203.0.113.7",
	} {
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
