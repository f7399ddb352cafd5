package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// took is how long cases took, which differs from run to run.
var took = regexp.MustCompile(`, in [0-9.]+[µm]?s\n`)

// testIn runs caddy rate-limit test in a directory, and returns what it prints and its exit code.
func testIn(t *testing.T, dir string, args ...string) (output, errorOutput string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), append([]string{"rate-limit", "test"}, args...)...)
	var failed strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = dir, harness.Environment(dir), &failed
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return took.ReplaceAllString(string(text), ", in 1ms\n"), failed.String(), cmd.ProcessState.ExitCode()
}

// writeAll writes files into a new directory.
func writeAll(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTestingLimits follows docs/testing.md: its cases hold on its config, its commands print what is below them, and
// its failure is that of the cases with a wrong number.
func TestTestingLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var config, file string
	var dir, printed string
	for _, match := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		switch kind, text := match[1], match[2]; {
		case kind == "caddyfile":
			config = text
		case kind == "" && strings.HasPrefix(text, "case "):
			file = text
			dir = writeAll(t, map[string]string{"Caddyfile": config, "Caddyfile.test": file})
		case kind == "sh":
			printed, _, _ = testIn(t, dir, strings.Fields(text)[3:]...)
		case kind == "" && strings.HasPrefix(text, "FAIL"):
			wrong := strings.Replace(file, "pass 5 refused 1 by logins status 429", "pass", 1)
			printed, _, _ = testIn(t, writeAll(t, map[string]string{"Caddyfile": config, "Caddyfile.test": wrong}), "--run", "five")
			compare(t, strings.TrimSuffix(printed, "1 case, 1 failed, in 1ms\n"), text)
		case kind == "":
			compare(t, printed, took.ReplaceAllString(text, ", in 1ms\n"))
		}
	}
	if file == "" {
		t.Error("the page has no cases")
	}
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("it prints\n%s\nthe page has\n%s", got, want)
	}
}

const limitedSite = "localhost {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 2/1m\n\t\t}\n\t}\n}\n"

// TestExitCodesOfTest: the exit code says whether cases hold, whether changes are noticed, and whether there is an
// answer at all. Errors name the file, the line and what to do.
func TestExitCodesOfTest(t *testing.T) {
	t.Parallel()
	dir := writeAll(t, map[string]string{
		"Caddyfile":         limitedSite,
		"Caddyfile.test":    "case \"two\" {\n\tGET / repeat 3 pass 2\n}\n",
		"fails.test":        "config Caddyfile\ncase \"three\" {\n\tGET / repeat 3\n}\n",
		"broken.test":       "config Caddyfile\ncase \"x\" {\n\tGET / pas 2\n}\n",
		"wrong.config":      "localhost {\n\trate_limit {\n\t\tzone clients {\n\t\t\trate 2\n\t\t}\n\t}\n}\n",
		"wrong.config.test": "adapter caddyfile\ncase \"x\" {\n\tGET /\n}\n",
		"gone.test":         "case \"x\" {\n\tGET /\n}\n",
	})
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "1 case, 0 failed"},
		{"--mutate", 3, "MISS  zone clients: window 1m -> 2m: no case fails"},
		{"--mutate -v", 3, "found zone clients: removed: two"},
		{"fails.test", 2, "FAIL  three"},
		{"fails.test --mutate", 2, "1 case, 1 failed"},
		{"fails.test Caddyfile.test --run two", 0, "1 case, 0 failed"},
		{"--run nothing", 1, `no case matches --run "nothing"`},
		{"--run (", 1, "--run: error parsing regexp"},
		{"broken.test", 1, `unknown word in a request: 'pas'; did you mean "pass"?`},
		{"broken.test", 1, "at broken.test:3"},
		{"wrong.config.test", 1, "adapting wrong.config: "},
		{"gone.test", 1, "reading the config: open gone: no such file"},
		{"gone.test --config Caddyfile", 0, "ok    x"},
		{"nothing.test", 1, "nothing.test: no such file"},
		{".", 1, "broken.test:3"},
	} {
		output, failed, code := testIn(t, dir, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(output+failed, c.want) {
			t.Errorf("test %s: exit code %d, want %d with %q\n%s%s", c.args, code, c.code, c.want, output, failed)
		}
	}
	if _, failed, code := testIn(t, t.TempDir()); code != 1 || !strings.Contains(failed, "there is no Caddyfile.test here: name a file of cases") {
		t.Errorf("in an empty directory: exit code %d, %s", code, failed)
	}
}

// TestResultsForPrograms: the results are also JSON and JUnit XML.
func TestResultsForPrograms(t *testing.T) {
	t.Parallel()
	dir := writeAll(t, map[string]string{"Caddyfile": limitedSite, "Caddyfile.test": "case \"two\" {\n\tGET / repeat 3 pass 2\n}\n"})
	output, _, _ := testIn(t, dir, "--json", "--mutate", "--junit", "report.xml")
	var report struct {
		Cases []struct {
			Name string `json:"name"`
			Line int    `json:"line"`
		} `json:"cases"`
		Changes []struct {
			Change  string `json:"change"`
			FoundBy string `json:"found_by"`
		} `json:"changes"`
	}
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if len(report.Cases) != 1 || report.Cases[0].Name != "two" || report.Cases[0].Line != 1 || len(report.Changes) < 5 || report.Changes[0].FoundBy != "two" {
		t.Errorf("%+v", report)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.xml"))
	if err != nil || !strings.Contains(string(text), `<testsuite name="changes of Caddyfile"`) || !strings.Contains(string(text), "no case fails with this change") {
		t.Errorf("%v: %s", err, text)
	}
}
