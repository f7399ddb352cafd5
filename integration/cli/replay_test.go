//go:build deep

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestChoosingALimit runs all commands of docs/choosing-a-limit.md, with the log and the configs of the
// page, and compares what replays print with the text below them. With UPDATE_GOLDEN=1 it writes that.
// Then it rolls the limit out with the commands and the configs of docs/rollout.md.
func TestChoosingALimit(t *testing.T) {
	t.Parallel()
	r := reader{dir: harness.ShortDir(t)}
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
