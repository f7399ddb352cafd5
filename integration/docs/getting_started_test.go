//go:build deep

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestGettingStarted: a newcomer follows the page word for word in an empty folder: saves its configs, types its
// commands, is refused, sees why, and is let through. The log suggests the number that the page goes on with.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	sample, err := filepath.Abs("../../testdata/replay/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	// This test's Caddy is what is built, on ports of its own, and the sample is not downloaded. The steps must be
	// done within a window, however slow this machine is.
	dir, site, admin := harness.ShortDir(t), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t)), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t))
	var script strings.Builder
	script.WriteString(`set -eu
go() { test "$1" = run && ln -s "$CADDY" caddy; }
curl() { if [ "$1" = -sSLO ]; then cp "$SAMPLE" .; else command curl "$@"; fi; }
`)
	started := false
	for _, block := range regexp.MustCompile("(?ms)^```(caddyfile|sh)\n(.*?)^```$").FindAllStringSubmatch(harness.ReadPage(t, "../../docs/getting-started.md"), -1) {
		if block[1] == "sh" {
			started = started || strings.Contains(block[2], "caddy start")
			script.WriteString(strings.ReplaceAll(block[2], "127.0.0.1:8080", site))
			continue
		}
		config := strings.Replace(block[2], ":8080", "http://"+site, 1)
		if strings.Contains(script.String(), "replay") {
			config = strings.Replace(config, "/1m", "/1h", 1)
		} else {
			config = block[2] // the sample is of another host
		}
		script.WriteString("cat > Caddyfile <<'END'\n" + config + "END\n")
	}
	if !started {
		t.Fatal("the page starts no Caddy")
	}
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CADDY="+harness.CommandBinary(t), "SAMPLE="+sample, "CADDY_ADMIN="+admin, "HOME="+dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	rest := string(output)
	for _, want := range []string{
		"80/1m               120                1  suggested",             // the log has chosen
		strings.Repeat("200 ", 100), "clients  100       20 (dry run)  1", // a dry run
		"429 Too Many Requests", "Retry-After: ", // enforced
		"Zone clients is refusing this key: 80 of 80 used.", "rate-limit reset clients 127.0.0.1", // seen
		"200 OK", "Hello, 127.0.0.1!", // let through
		"0 fail and 1 warn.", "all 102 recent requests have the same key",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q after the others in\n%s", want, output)
		}
		rest = after
	}
}

// TestTwoInstances: docs/redis.md has two instances on one machine, word for word but for the ports.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(harness.ReadPage(t, "../../docs/redis.md"), "Two instances on one machine")
	section, _, _ = strings.Cut(section, "## Rights")
	blocks := regexp.MustCompile("(?ms)^```(caddyfile|sh)\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	port := func() string { return strconv.Itoa(redistest.FreePort(t)) }
	redis := port()
	ports := strings.NewReplacer("2021", port(), "2022", port(), "8081", port(), "8082", port(),
		"redis-server", "redis-server --port "+redis, "store redis", "store redis {\naddress 127.0.0.1:"+redis+"\n}")
	script := "set -eu\ntrap 'kill $(jobs -p)' EXIT\nln -s \"$CADDY\" caddy\ncat > Caddyfile <<'END'\n" + blocks[0][2] + "END\n" + blocks[1][2]
	cmd := exec.Command("bash", "-c", ports.Replace(script))
	cmd.Dir = harness.ShortDir(t)
	cmd.Env = append(os.Environ(), "CADDY="+harness.CommandBinary(t), "HOME="+cmd.Dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if want := strings.Repeat("200 ", 5) + "429 "; !strings.Contains(string(output), want) {
		t.Errorf("no %q in\n%s", want, output)
	}
}
