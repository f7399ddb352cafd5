package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"

	_ "github.com/seed-161337e5/caddyratelimit"
)

// here changes to a new directory with files.
func here(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// took is how long cases took, which differs from run to run.
var took = regexp.MustCompile(`, in [0-9.]+[µm]?s\n`)

// offline runs a command, and returns what it prints and its exit code.
func offline(t *testing.T, input string, args ...string) (string, int64) {
	t.Helper()
	var output bytes.Buffer
	cmd := command(&output, args...)
	cmd.SetIn(strings.NewReader(input))
	err := cmd.ExecuteContext(t.Context())
	return took.ReplaceAllString(output.String(), ", in 1ms\n"), exitCode(err)
}

// TestTestingLimits follows docs/testing.md: its cases hold on its config, its commands print what is below them, and
// its failure is that of the cases with a wrong number.
func TestTestingLimits(t *testing.T) {
	text, err := os.ReadFile("../../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var config, file, printed string
	compare := func(want string) {
		t.Helper()
		if strings.TrimSpace(printed) != strings.TrimSpace(want) {
			t.Errorf("it prints\n%s\nthe page has\n%s", printed, want)
		}
	}
	for _, match := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		switch kind, text := match[1], match[2]; {
		case kind == "caddyfile":
			config = text
		case kind == "" && strings.HasPrefix(text, "case "):
			file = text
			here(t, map[string]string{"Caddyfile": config, "Caddyfile.test": file})
		case kind == "sh":
			printed, _ = offline(t, "", strings.Fields(text)[2:]...)
		case kind == "" && strings.HasPrefix(text, "FAIL"):
			wrong := strings.Replace(file, "pass 5 by logins status 429", "pass 6", 1)
			here(t, map[string]string{"Caddyfile": config, "Caddyfile.test": wrong})
			printed, _ = offline(t, "", "test", "--run", "five")
			printed = strings.TrimSuffix(printed, "1 case, 1 failed, in 1ms\n")
			compare(text)
		case kind == "":
			compare(took.ReplaceAllString(text, ", in 1ms\n"))
		}
	}
	if file == "" {
		t.Error("the page has no cases")
	}
}

const limitedSite = "localhost {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 2/1m\n\t\t}\n\t}\n}\n"

// TestExitCodesOfTest: the exit code says whether cases hold, whether changes are noticed, and whether there is an
// answer at all. Errors name the file, the line and what to do. The results are also JSON and JUnit XML.
func TestExitCodesOfTest(t *testing.T) {
	here(t, map[string]string{
		"Caddyfile":         limitedSite,
		"Caddyfile.test":    "case \"two\" {\n\tGET / repeat 3 pass 2\n}\n",
		"fails.test":        "case \"three\" {\n\tGET / repeat 3\n}\n",
		"broken.test":       "case \"x\" {\n\tGET / pas 2\n}\n",
		"wrong.config":      "localhost {\n\trate_limit {\n\t\tzone clients {\n\t\t\trate 2\n\t\t}\n\t}\n}\n",
		"wrong.config.test": "case \"x\" {\n\tGET /\n}\n",
		"gone.test":         "case \"x\" {\n\tGET /\n}\n",
	})
	for _, c := range []struct {
		args string
		code int64
		want string
	}{
		{"", 0, "1 case, 0 failed"},
		{"--mutate", 3, "MISS  zone clients: window 1m -> 2m: no case fails"},
		{"fails.test --config Caddyfile", 2, "FAIL  three"},
		{"fails.test Caddyfile.test --config Caddyfile --run two", 0, "1 case, 0 failed"},
		{"--run nothing", 1, `no case matches --run "nothing"`},
		{"--run (", 1, `for "--run" flag: error parsing regexp`},
		{"broken.test", 1, `unknown word in a request: 'pas'; did you mean "pass"?`},
		{"wrong.config.test", 1, "adapting wrong.config: "},
		{"gone.test", 1, "reading the config: open gone: no such file"},
		{"gone.test --config Caddyfile", 0, "ok    x"},
		{"nothing.test", 1, "nothing.test: no such file"},
		{".", 1, "is a directory: name a file of cases, such as Caddyfile.test"},
	} {
		output, code := offline(t, "", append([]string{"test"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(output, c.want) {
			t.Errorf("test %s: exit code %d, want %d with %q\n%s", c.args, code, c.code, c.want, output)
		}
	}
	output, _ := offline(t, "", "test", "--json", "--mutate", "--junit", "report.xml")
	var report struct {
		Cases   []struct{ Name string }
		Changes []struct {
			FoundBy string `json:"found_by"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(output)).Decode(&report); err != nil || len(report.Cases) != 1 || report.Cases[0].Name != "two" || len(report.Changes) < 5 || report.Changes[0].FoundBy != "two" {
		t.Errorf("%v: %+v in\n%s", err, report, output)
	}
	text, err := os.ReadFile("report.xml")
	if err != nil || !strings.Contains(string(text), `classname="changes of Caddyfile"`) || !strings.Contains(string(text), "no case fails with this change") {
		t.Errorf("%v: %s", err, text)
	}
}

// severalServers has servers with and without TLS.
const severalServers = `{
	http_port 8080
	https_port 8443
}
example.com {
	tls internal
	rate_limit {
		zone logins {
			match {
				method POST
				path /login
			}
			key "{client_ip} {http.request.tls.server_name} {http.request.proto}"
			rate 5/1m
		}
		zone bodies {
			match vars_regexp user {http.request.body} user=(\w+)
			key {re.user.1}
			rate 3/1m
			enforce 0
		}
	}
	respond ok
}
http://inside.example.com:9000 {
	bind 127.0.0.1
	respond inside
}
http://inside.example.com:9000 {
	bind 127.0.0.2
	rate_limit {
		zone second {
			rate 5/1m
		}
	}
}
`

// TestExplainOffline: explain --offline answers from a config file, for the server that would get the request.
func TestExplainOffline(t *testing.T) {
	here(t, map[string]string{"Caddyfile": severalServers})
	for _, c := range []struct {
		args string
		want string
		code int64
	}{
		{"-X POST https://example.com/login", "127.0.0.1 example.com HTTP/2.0", 0},
		{"-d a=b&user=alice https://example.com/", "Zone logins does not count it: path /login does not match.", 0},
		{"-d a=b&user=alice https://example.com/", "0 of 3 3 alice", 0},
		{"-d user=carol --config ./Caddyfile --adapter caddyfile https://example.com/", "0 of 3 3 carol", 0},
		{"http://example.com/", "No limit applies to it: it meets no rate_limit handler.", 0},
		{"http://inside.example.com:9000/ --server srv1", "second allowed 0 of 5", 0},
		{"--json https://example.com/", `"outcome": "not_limited"`, 0},
		{"http://inside.example.com:9000/", "several servers may get it", 1},
		{"https://example.com:8080/", "has no TLS there", 1},
		{"http://example.com:8443/", "expects TLS there: write https", 1},
		{"example.com", "write a whole URL", 1},
		{"--assume alice http://example.com/", `invalid argument "alice" for "--assume" flag: alice must be formatted as key=value`, 1},
		{"-d @form http://example.com/", `-d @form: write the body itself, as in -d "$(cat file)"`, 1},
		{"--config nowhere http://example.com/", "nowhere", 1},
	} {
		output, code := offline(t, "", append([]string{"explain", "--offline"}, strings.Fields(c.args)...)...)
		if flat := strings.Join(strings.Fields(output), " "); code != c.code || !strings.Contains(flat, strings.Join(strings.Fields(c.want), " ")) {
			t.Errorf("%s: exit code %d, want %d with %q in\n%s", c.args, code, c.code, c.want, output)
		}
	}
}

// command returns caddy rate-limit with arguments, to run in this process.
func command(output io.Writer, args ...string) *cobra.Command {
	cmd := &cobra.Command{Use: "rate-limit", SilenceUsage: true}
	caddycmd.Commands()["rate-limit"].CobraFunc(cmd)
	cmd.SetOut(output)
	cmd.SetErr(output)
	cmd.SetArgs(args)
	return cmd
}

// TestExitCodeOfDiff: with --exit-code, another config ends with 2, also in JSON, and the same config with 0.
func TestExitCodeOfDiff(t *testing.T) {
	here(t, map[string]string{"less": limitedSite, "more": strings.Replace(limitedSite, "2/1m", "3/1m", 1)})
	for args, want := range map[string]int64{
		"more less": 0, "--exit-code more less": 2, "--exit-code --json more less": 2,
		"--exit-code less more": 2, "--exit-code less less": 0, "--exit-code less missing": 1,
	} {
		if output, got := offline(t, "", append([]string{"diff"}, strings.Fields(args)...)...); got != want {
			t.Errorf("%s: %d, want %d\n%s", args, got, want, output)
		}
	}
	line := `{"ts":1795500000,"request":{"remote_ip":"192.0.2.1","method":"GET","host":"localhost","uri":"/"},"status":200}`
	if output, code := offline(t, line, "diff", "more", "less", "-"); code != 0 || !strings.Contains(output, "Of 1 request by 1 client") {
		t.Errorf("a log from the standard input: %d\n%s", code, output)
	}
	if output, code := offline(t, line, "diff", "-", "less", "-"); code != 1 || !strings.Contains(output, "can be read once") {
		t.Errorf("a config and a log from the standard input: %d\n%s", code, output)
	}
}

// exitCode returns the exit code of a command that has returned an error.
func exitCode(err error) int64 {
	if err == nil {
		return 0
	}
	if of := reflect.Indirect(reflect.ValueOf(err)); of.Kind() == reflect.Struct && of.FieldByName("ExitCode").IsValid() {
		return of.FieldByName("ExitCode").Int()
	}
	return 1
}
