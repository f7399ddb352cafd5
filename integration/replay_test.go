package integration_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestReplayInTheDocs: the commands of docs/choosing-a-limit.md print what is shown there.
func TestReplayInTheDocs(t *testing.T) {
	t.Parallel()
	const page = "../docs/choosing-a-limit.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	if err := os.CopyFS(dir, os.DirFS("../testdata/replay")); err != nil {
		t.Fatal(err)
	}
	// A command, and the report that follows it.
	block := regexp.MustCompile("(?ms)^```sh\n(caddy rate-limit replay [^\n]*)\n```\n(.*?)^```\n(.*?)^```\n")
	times := regexp.MustCompile(`, \d+\.\d s`)
	found := block.FindAllSubmatchIndex(text, -1)
	if len(found) < 2 {
		t.Fatalf("found just %d commands", len(found))
	}
	updated := string(text)
	for _, at := range found {
		command, want := string(text[at[2]:at[3]]), string(text[at[6]:at[7]])
		got := replayIn(t, dir, strings.Fields(command)[1:])
		got = times.ReplaceAllString(got, ", 0.1 s")
		if strings.Contains(command, "--try") { // shown in part
			got = got[strings.Index(got, "  WHAT IF"):]
		}
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", command, got, want)
			updated = strings.Replace(updated, string(text[at[0]:at[1]]), string(text[at[0]:at[6]])+got+"```\n", 1)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", command, n, line)
			}
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(page, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
