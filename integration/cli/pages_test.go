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
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestChoosingALimit runs all commands of docs/choosing-a-limit.md, with the log and the configs of the
// page, and compares what replays print with the text below them. With UPDATE_GOLDEN=1 it writes that.
// Then it rolls the limit out with the commands and the configs of docs/rollout.md.
func TestChoosingALimit(t *testing.T) {
	t.Parallel()
	r := reader{dir: redistest.ShortDir(t)}
	if err := os.CopyFS(r.dir, os.DirFS("../../testdata/replay")); err != nil {
		t.Fatal(err)
	}
	r.follow(t, "../../docs/choosing-a-limit.md")
	if report, err := os.ReadFile(filepath.Join(r.dir, "report.html")); err != nil || !strings.Contains(string(report), `"name":"clients"`) {
		t.Errorf("the page with pictures: %v", err)
	}
	r.follow(t, "../../docs/rollout.md")
	if r.commands < 16 {
		t.Errorf("found just %d commands", r.commands)
	}
	for _, want := range []string{"80/1m (dry run)", "80/1m (enforce 10 %)", "40/1m (dry run)"} {
		_, after, found := strings.Cut(r.answers, want)
		if !found {
			t.Errorf("the limit is not rolled out as the page says: no %q in %s", want, r.answers)
		}
		r.answers = after
	}
}

// reader does what pages say.
type reader struct {
	dir      string // with the log and the Caddyfile
	s        *harness.Server
	config   string
	commands int
	answers  string // what commands have printed that ask a Caddy
}

// follow runs the commands of a page.
func (r *reader) follow(t *testing.T, file string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, times := regexp.MustCompile("(?ms)^```(caddyfile|sh|)\n(.*?)^```\n"), regexp.MustCompile(`, \d+\.\d s`)
	command, printed := "", ""
	got := block.ReplaceAllStringFunc(string(page), func(text string) string {
		switch match := block.FindStringSubmatch(text); match[1] {
		case "caddyfile":
			r.config = match[2]
			write(t, r.dir, r.config)
			if r.s != nil {
				write(t, r.s.Dir, siteOnSocket(r.config))
			}
		case "sh":
			for command = range strings.Lines(match[2]) {
				r.commands++
				if strings.HasPrefix(command, "caddy rate-limit replay ") {
					printed = times.ReplaceAllString(replayIn(t, r.dir, strings.Fields(command)[1:]), ", 0.1 s")
					continue
				}
				if r.s == nil {
					r.s = harness.StartCaddy(t, siteOnSocket(r.config))
				}
				const caddy = `caddy() { [ "$1" = validate ] || set -- "$@" --address "unix/$ADMIN"; command "$CADDY" "$@"; }`
				output, err := r.s.Shell(caddy + "\n" + command)
				if err != nil {
					t.Errorf("%s%v\n%s", command, err, output)
				}
				r.answers += output
			}
		case "":
			if strings.Contains(command, "--try") || strings.Contains(command, "--suggest") { // shown in part
				printed = printed[max(0, strings.Index(printed, "  WHAT IF")):]
			}
			for line := range strings.Lines(printed) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%s: a line of %d columns: %s", command, n, line)
				}
			}
			return "```\n" + printed + "```\n"
		}
		return text
	})
	switch {
	case got == string(page):
	case os.Getenv("UPDATE_GOLDEN") != "":
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("the commands print something else: with UPDATE_GOLDEN=1 the test writes\n%s", got)
	}
}

func write(t *testing.T, dir, config string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// siteOnSocket returns a config of the page for a Caddy that runs here.
func siteOnSocket(config string) string {
	_, site, _ := strings.Cut(config, "{\n")
	return harness.Caddyfile("", site[:strings.LastIndex(site, "}")])
}

// replayIn runs caddy with arguments in a directory.
func replayIn(t *testing.T, dir string, args []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), args...)
	cmd.Dir, cmd.Env = dir, append(harness.Environment(dir), "TZ=UTC")
	output, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", args, err)
	}
	return string(output)
}

// recorded is the terminal in the README, and a command in it.
var recorded, prompt = regexp.MustCompile("(?s)(## Who got 429, and why\\?\n\n```console\n)(.*?)```"), regexp.MustCompile(`(?m)^\$ (.*)\n`)

// TestGoldenRecording: the terminal in the README shows what the commands print in a terminal now.
func TestGoldenRecording(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the command script has other flags here")
	}
	readme := harness.ReadPage(t, "../../README.md")
	s := harness.StartSites(t, harness.CommandBinary(t), 1, ofReadme(t, readme))
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
	var recording strings.Builder
	for _, command := range prompt.FindAllStringSubmatch(found[2], -1) {
		cmd := exec.CommandContext(t.Context(), "script", "-qec", command[1], "/dev/null") // gives it a terminal
		cmd.Env = append(harness.Environment(s.Dir), "PATH="+bin+":"+os.Getenv("PATH"), "COLUMNS=80", "TERM=xterm", "CADDY_ADMIN=unix/"+filepath.Join(s.Dir, "admin"))
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command[1], err, output)
		}
		fmt.Fprintf(&recording, "$ %s\n%s", command[1], strings.ReplaceAll(string(output), "\r\n", "\n"))
	}
	if withoutTimes(found[2]) == withoutTimes(recording.String()) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Errorf("the README has\n%s\nwant (make golden writes it)\n%s", found[2], recording.String())
	} else if err := os.WriteFile("../../README.md", []byte(strings.Replace(readme, found[2], recording.String(), 1)), 0o644); err != nil {
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
