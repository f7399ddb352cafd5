package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestGettingStarted: a newcomer types the commands of the page, twelve at most, and is refused,
// sees why, and is let through.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../testdata/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	if len(commands) > 12 {
		t.Errorf("%d commands, want at most 12", len(commands))
	}
	// This checkout is the clone and this test's Caddy is what is built, both on ports of their own.
	dir, site, admin := shortDir(t), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t)), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t))
	if err := os.MkdirAll(filepath.Join(dir, "checkout", "testdata"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The commands must be done within a window, however slow this machine is.
	copied := strings.NewReplacer(":8080", "http://"+site, "window 10s", "window 10m").Replace(string(config))
	if err := os.WriteFile(filepath.Join(dir, "checkout", "testdata", "Caddyfile"), []byte(copied), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "set -eu\ngit() { mv checkout caddyratelimit; }\ngo() { ln -s \"$CADDY\" caddy; }\n" +
		strings.ReplaceAll(strings.Join(commands, "\n"), "127.0.0.1:8080", site)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CADDY="+commandBinary(t), "CADDY_ADMIN="+admin, "HOME="+dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	rest := string(output)
	for _, want := range []string{
		strings.Repeat("200 ", 10) + "429 429 ", "429 Too Many Requests", "Retry-After: ", // refused
		"127.0.0.1", "Zone clients is refusing this key: 10 of 10 used.", "rate-limit reset clients 127.0.0.1", // seen
		"200 OK", "Hello, 127.0.0.1!", // let through
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q after the others in\n%s", want, output)
		}
		rest = after
	}
}
