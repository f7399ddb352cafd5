package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestChoosingALimit runs all commands of docs/choosing-a-limit.md, with the log and the configs of the
// page, and compares what replays print with the text below them. With UPDATE_GOLDEN=1 it writes that.
func TestChoosingALimit(t *testing.T) {
	t.Parallel()
	const file = "../docs/choosing-a-limit.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	if err := os.CopyFS(dir, os.DirFS("../testdata/replay")); err != nil {
		t.Fatal(err)
	}
	block, times := regexp.MustCompile("(?ms)^```(caddyfile|sh|)\n(.*?)^```\n"), regexp.MustCompile(`, \d+\.\d s`)
	var s *server // for the commands that ask one
	config, command, printed, answers, commands := "", "", "", "", 0
	got := block.ReplaceAllStringFunc(string(page), func(text string) string {
		switch match := block.FindStringSubmatch(text); match[1] {
		case "caddyfile":
			config = match[2]
			write(t, dir, config)
			if s != nil {
				write(t, s.dir, siteOnSocket(config))
			}
		case "sh":
			for command = range strings.Lines(match[2]) {
				commands++
				if strings.HasPrefix(command, "caddy rate-limit replay ") {
					printed = times.ReplaceAllString(replayIn(t, dir, strings.Fields(command)[1:]), ", 0.1 s")
					continue
				}
				if s == nil {
					s = startCaddy(t, siteOnSocket(config))
				}
				output, err := s.shell(`caddy() { command "$CADDY" "$@" --address "unix/$ADMIN"; }` + "\n" + command)
				if err != nil {
					t.Errorf("%s%v\n%s", command, err, output)
				}
				answers += output
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
	if commands < 9 {
		t.Errorf("found just %d commands", commands)
	}
	if report, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !strings.Contains(string(report), `"name":"clients"`) {
		t.Errorf("the page with pictures: %v", err)
	}
	if !strings.Contains(answers, "dry run") || !strings.Contains(answers, "enforce 10 %") {
		t.Errorf("the limit is not rolled out as the page says: %s", answers)
	}
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
	return caddyfile("", site[:strings.LastIndex(site, "}")])
}

// replayIn runs caddy with arguments in a directory.
func replayIn(t *testing.T, dir string, args []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), commandBinary(t), args...)
	cmd.Dir, cmd.Env = dir, append(environment(dir), "TZ=UTC")
	output, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", args, err)
	}
	return string(output)
}

// TestReplayTroubles: a log that cannot be read is an error that names it and says what to do.
func TestReplayTroubles(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.CopyFS(dir, os.DirFS("../testdata/replay")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "access.log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":  {"", "there are no requests in the logs"},
		"binary": {"\x7fELF\x02\x01\x00\x00\x01", "binary: it is no text, but binary"},
		"utf16":  {"\xff\xfe1\x009\x002\x00", "utf16: it is UTF-16: convert it first, as in iconv -f UTF-16 -t UTF-8 utf16 | caddy rate-limit replay -"},
		"prose":  {"Dear log,\n", `prose: none of the first lines is in a format that is known`},
		"cut":    {string(whole[:len(whole)/2]), "unpacking gzip: the file is cut: its end is missing"},
		"long":   {strings.Repeat("x", 2<<20) + "\n", `long: none of the first lines is in a format that is known`},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), commandBinary(t), "rate-limit", "replay", name)
		cmd.Dir, cmd.Env = dir, environment(dir)
		output, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(output), c.want) || strings.Contains(string(output), "panic") {
			t.Errorf("%s: %v, got\n%.2000s\nwant\n%s", name, err, output, c.want)
		}
	}
}
